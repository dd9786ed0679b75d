package header

import (
	"strings"
)

// never reports whether a header of that canonical name is kept under no rule: it belongs to one connection, is ours, holds
// credentials, or becomes a variable of the environment that HTTP clients obey (https://httpoxy.org).
func never(name string) bool {
	return hopByHop[name] || strings.HasPrefix(name, OwnPrefix) || strings.HasPrefix(name, "Proxy-") ||
		name == "Proxy" || name == "Authorization" || name == "Cookie"
}

// ours reports whether a header of that canonical name is this program's to set.
func ours(name string) bool {
	return strings.HasPrefix(name, OwnPrefix) || name == IdempotencyKey
}

// isDenied reports whether a header of that canonical name is passed only where somebody asks for it by its whole name. No
// sender of webhooks sets one of these, and applications, frameworks and proxies act on them: they say where a request
// came from and went to, who is logged in, and what else is to be done.
func isDenied(name string) bool {
	if denied[name] || never(name) {
		return true
	}
	for i := range len(name) {
		if name[i] == '-' && deniedFamilies[name[:i+1]] {
			return true
		}
	}
	return false
}

// denied are whole names.
var denied = set(
	// Ours where nobody names them, and traces that a stranger could join.
	IdempotencyKey, WebhookID, WebhookTimestamp, WebhookSignature,
	"Traceparent", "Tracestate", "Baggage", "B3", "Uber-Trace-Id", "X-Cloud-Trace-Context", "X-Amzn-Trace-Id",
	// Where a request came from. Proxies set these, and applications believe them.
	"Forwarded", "Forwarded-For", "Forwarded-Host", "Forwarded-Proto", "Real-Ip", "X-Ip", "Incap-Client-Ip", "Ali-Cdn-Real-Ip", "Cdn-Src-Ip",
	"Via", "Cdn-Loop", "Max-Forwards", "Client-Ip", "True-Client-Ip", "X-True-Client-Ip", "X-Real-Ip", "X-Client-Ip",
	"X-Cluster-Client-Ip", "X-Remote-Ip", "X-Remote-Addr", "X-Remote-Host", "X-Originating-Ip", "X-Source-Ip", "X-Host", "X-Port",
	"X-Scheme", "X-Proto", "X-Protocol", "X-Url-Scheme", "X-Forwarded", "Front-End-Https", "Https", "X-Https", "X-Ssl", "X-Proxyuser-Ip",
	"X-Custom-Ip-Authorization", "X-Backend-Host", "X-Server-Ip", "X-Server-Name", "Host-Override",
	// Which path and method are meant: https://symfony.com/cve-2018-14773 and its like.
	"X-Method-Override", "Method", "X-Method", "Next-Action", "Disguised-Host",
	"X-Methodoverride", "X-Rewrite", "X-Request-Uri", "X-Uri", "X-Url", "Request-Uri", "Script-Name", "Path-Info",
	"X-Script-Name", "X-Path-Info", "X-Waws-Unencoded-Url", "X-Matched-Path", "X-Sendfile", "X-Sendfile-Type",
	// Who is logged in.
	"Remote-User", "X-Remote-User", "Auth-User", "X-Auth", "X-Email", "X-Group", "X-Scope-Orgid", "X-Proxiedentitieschain", "X-Serverless-Authorization",
	"X-Endpoint-Api-Userinfo", "X-Cloudscheduler", "Authenticated-User", "X-Authenticated", "X-Authorization", "X-User", "X-Username", "X-Userid",
	"X-Userinfo", "X-Groups", "X-Role", "X-Roles", "X-Account", "X-Admin", "X-Internal", "X-Access-Token", "X-Id-Token", "X-Session-Id",
	"X-Session-Token", "X-Api-Key", "X-Apikey", "Api-Key", "Apikey", "X-Jwt-Assertion", "Cookie2", "Set-Cookie", "Www-Authenticate",
	"Sm-User", "Sm-Universalid", "Iv-User", "Iv-Groups", "Iv-Creds", "Eppn", "X-Amz-Security-Token", "Dapr-Api-Token",
	// Which certificate a client has shown, RFC 9440 and before.
	"Client-Cert", "Client-Cert-Chain", "X-Client-Cert", "X-Client-Certificate", "X-Client-Dn", "X-Client-Verify", "X-Client-Verified",
	"X-Forwarded-Client-Cert", "X-Arr-Clientcert",
	// What browsers say, and applications refuse or answer otherwise by.
	"Origin", "Referer", "X-Csrf-Token", "X-Xsrf-Token", "X-Csrftoken", "X-Xsrftoken", "Csrf-Token", "Early-Data", "Upgrade-Insecure-Requests",
	// What asks for another answer, or for something else to be done: ranges, conditions, encodings, preferences, WebDAV.
	"Range", "Content-Range", "If", "Accept-Encoding", "Accept-Ranges", "Prefer", "Depth", "Destination", "Overwrite", "Lock-Token",
	"Timeout", "Content-Md5", "Content-Location", "Surrogate-Capability", "X-Debug", "X-Debug-Token", "X-Moz",
)

// deniedFamilies are beginnings of names, each with the dash that ends it.
var deniedFamilies = set(
	"If-", "Http-", "Sec-", "Access-Control-", "X-Forwarded-", "X-Forward-", "X-Real-", "X-Original-", "X-Originating-", "X-Rewrite-", "X-Http-",
	"X-Accel-", "X-Proxy-", "X-Remote-", "Remote-", "Wl-Proxy-", "X-B3-", "X-Datadog-", "X-Ot-", "X-Middleware-", "X-Invoke-", "X-Nextjs-", "X-Override-",
	"X-Auth-", "X-Authn-", "X-Authz-", "X-Authenticated-", "X-Authentik-", "X-Authelia-", "X-Webauth-", "X-Pomerium-", "X-Vouch-", "X-Sso-", "X-User-",
	"X-Consumer-", "X-Credential-", "X-Impersonate-", "Impersonate-", "X-Idp-", "X-Shib-", "Shib-", "X-Hasura-", "X-Parse-", "Oidc-", "X-Oidc-", "X-Saml-",
	"Ssl-", "X-Ssl-", "X-Tls-", "Tls-", "X-Client-Cert-", "X-Client-Ssl-", "X-Mtls-",
	// Those that networks and platforms in front of applications set.
	"Cf-", "Tailscale-", "Fastly-", "Akamai-", "X-Akamai-", "Fly-", "X-Envoy-", "X-Istio-", "X-Kong-", "X-Arr-", "X-Azure-", "X-Ms-Client-", "X-Ms-Token-", "X-Goog-Authenticated-",
	"X-Goog-Iap-", "X-Cloudtasks-", "X-Cloudscheduler-",
	"X-Appengine-", "X-Google-", "X-Amzn-", "X-Apigateway-", "X-Nf-", "Cloudfront-", "X-Cdn-", "X-Vercel-", "X-Now-", "X-Railway-", "X-Koyeb-",
	"Surrogate-", "Do-Connecting-",
)

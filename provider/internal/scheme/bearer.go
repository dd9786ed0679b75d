package scheme

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/internal/jws"
	"github.com/hookonce/hookonce/provider/internal/remotekeys"
	"github.com/hookonce/hookonce/provider/spec"
)

// leeway is how far the clock of whoever issues tokens may be from ours (RFC 7519, section 4.1.4).
const leeway = time.Minute

// bearerScheme is a JSON Web Token of RS256 in the header Authorization, issued by an identity provider whose keys are
// fetched. It says who sends, and nothing about what.
type bearerScheme struct {
	name   string
	client *http.Client
	// party reads a secret: where the keys are, and what a token must say.
	party func(secret string) (keys string, check func(identity) string, err error)
}

func (s *bearerScheme) MarshalText() ([]byte, error) { return []byte(s.name), nil }
func (*bearerScheme) Covers() spec.Coverage          { return spec.CoversNothing }

// Signs is false: the token is the same for all requests of an hour.
func (*bearerScheme) Signs(v spec.Value) bool { return strings.HasPrefix(string(v), "const:") }

func (s *bearerScheme) Compile(secret string) (spec.Checker, error) {
	keys, check, err := s.party(secret)
	if err != nil {
		return nil, err
	}
	return &bearerChecker{remotekeys.NewSet(s.client, keys), check}, nil
}

// identity is what a token says of its bearer.
type identity struct {
	Issuer        string          `json:"iss"`
	Audience      json.RawMessage `json:"aud"`
	Expires       *float64        `json:"exp"`
	NotBefore     *float64        `json:"nbf"`
	Email         string          `json:"email"`
	EmailVerified bool            `json:"email_verified"`
	App           string          `json:"appid"` // of Entra's tokens of version 1
	Party         string          `json:"azp"`   // and of version 2
}

// isFor reports whether the token is for that audience, and no other.
func (id identity) isFor(audience string) bool {
	var one string
	return json.Unmarshal(id.Audience, &one) == nil && one == audience
}

type bearerChecker struct {
	keys *remotekeys.Set
	// check returns why the token is another one's, empty if it is not.
	check func(identity) string
}

func (c *bearerChecker) Check(req *hookonce.Request) error {
	line, err := incoming.Required(req.Header, "Authorization", "Bearer and a JSON Web Token")
	if err != nil {
		return err
	}
	text, bearer := strings.CutPrefix(line, "Bearer ")
	token, ok := jws.Parse(text, "RS256")
	if !bearer || !ok || !namesKey(token) {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "the header Authorization is not Bearer and a JSON Web Token of the algorithm RS256 with the identifier of its key")
	}
	key, err := c.keys.Key(token.KeyID, req)
	if err != nil {
		return err
	}
	if !token.SignedBy(key) {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token in Authorization was not signed with the key that it names")
	}
	var id identity
	if json.Unmarshal(token.Payload, &id) != nil || id.Expires == nil {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "the token's claims cannot be read, or it has no exp")
	}
	switch why := c.check(id); {
	case why != "":
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token is genuine, and %s", why)
	case !req.Now.Before(unix(*id.Expires).Add(leeway)):
		return incoming.Reject(hookonce.ReasonTimestampOld, "the token's exp is in the past")
	case id.NotBefore != nil && req.Now.Before(unix(*id.NotBefore).Add(-leeway)):
		return incoming.Reject(hookonce.ReasonTimestampFuture, "the token's nbf is in the future")
	}
	return nil
}

// namesKey reports whether a token says which key of a set it was signed with. The name does not become part of a request.
func namesKey(t jws.Token) bool { return t.KeyID != "" && len(t.KeyID) <= 256 }

// unix is a time in a claim, within what times can be.
func unix(seconds float64) time.Time {
	const latest = 253402300799 // the end of the year 9999
	return time.Unix(int64(min(max(seconds, 0), latest)), 0)
}

// GooglePubSub returns the scheme of push subscriptions with authentication, with a cache of Google's keys for each
// secret, which is service_account_email:audience.
func GooglePubSub(transport http.RoundTripper) spec.Scheme {
	return &bearerScheme{"google-pubsub", remotekeys.NewClient(transport), googleParty}
}

func googleParty(secret string) (string, func(identity) string, error) {
	parts, err := credentials(secret, "service_account_email", "audience")
	if err != nil {
		return "", nil, err
	}
	email, audience := parts[0], parts[1]
	if !strings.Contains(email, "@") {
		return "", nil, errors.New("is not service_account_email:audience: what precedes the first colon is no email address")
	}
	return "https://www.googleapis.com/oauth2/v3/certs", func(id identity) string {
		switch {
		case id.Issuer != "https://accounts.google.com" && id.Issuer != "accounts.google.com":
			return "its issuer (iss) is not Google's for accounts"
		case !id.isFor(audience):
			return "it is for another audience (aud); compare the push subscription's audience, which is the push endpoint's URL by default"
		case id.Email != email || !id.EmailVerified:
			return "it is another service account's (email); compare the one that the push subscription is set up with"
		}
		return ""
	}, nil
}

// The applications that Event Grid is in Microsoft's clouds, each with the host that issues its tokens.
const (
	entraHost     = "https://login.microsoftonline.com/"
	eventGridApp  = "4962773b-9cdb-44cf-a8bf-237846a00ab7"
	entraIssuerV1 = "https://sts.windows.net/"
)

// tenantID is the identifier of an Entra tenant. It becomes part of an address.
var tenantID = regexp.MustCompile(`\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\z`)

// AzureEventGrid returns the scheme of deliveries that are protected by Microsoft Entra, in Azure's public cloud, with a
// cache of the tenant's keys for each secret, which is tenant_id:audience.
func AzureEventGrid(transport http.RoundTripper) spec.Scheme {
	return &bearerScheme{"azure-event-grid-entra", remotekeys.NewClient(transport), entraParty}
}

func entraParty(secret string) (string, func(identity) string, error) {
	parts, err := credentials(secret, "tenant_id", "audience")
	if err != nil {
		return "", nil, err
	}
	tenant, audience := strings.ToLower(parts[0]), parts[1]
	if !tenantID.MatchString(tenant) {
		return "", nil, errors.New("is not tenant_id:audience: what precedes the first colon is no GUID")
	}
	issuers := []string{entraIssuerV1 + tenant + "/", entraHost + tenant + "/v2.0"}
	return entraHost + tenant + "/discovery/v2.0/keys", func(id identity) string {
		switch {
		case !slices.Contains(issuers, id.Issuer):
			return fmt.Sprintf("its issuer (iss) is not the tenant %s", tenant)
		case !id.isFor(audience):
			return "it is for another audience (aud); compare the application ID, or its URI, of the event subscription"
		case id.App != eventGridApp && id.Party != eventGridApp:
			return "it was not issued to Event Grid (appid, azp): anybody in the tenant can have one for this application"
		}
		return ""
	}, nil
}

// playScheme is [GooglePubSub] with the message's data decoded.
type playScheme struct{ *bearerScheme }

// GooglePlay returns the scheme of Google Play's notifications, which come through Pub/Sub. Their document is that of the
// push, with the notification that its data holds as a further member: notification.
func GooglePlay(transport http.RoundTripper) spec.Scheme {
	return playScheme{&bearerScheme{"google-play", remotekeys.NewClient(transport), googleParty}}
}

// Decode returns the push with its notification.
func (playScheme) Decode(req *hookonce.Request) ([]byte, error) {
	data := gjson.GetBytes(req.Body, "message.data")
	notification, err := base64.StdEncoding.DecodeString(data.String())
	switch {
	case !json.Valid(req.Body):
		return nil, errors.New("the body is not JSON")
	case data.Type != gjson.String || err != nil || !json.Valid(notification):
		return nil, errors.New("message.data is not base64 of JSON")
	}
	return sjson.SetRawBytes(req.Body, "notification", notification)
}

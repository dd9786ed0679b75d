package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/mattermost"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/rocketchat"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/gotify"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/ntfy"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/pushover"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// chat sends over what package shoutrrr knows: chats, and services that push to telephones.
type chat struct{ address string }

// chats are its services that are used, and whether they show a title apart from the text. What is
// left out: smtp, pagerduty, opsgenie and telegram, which are ours; logger, which nobody reads;
// hangouts, which is googlechat.
var chats = map[string]bool{
	"bark": true, "discord": true, "generic": false, "gotify": true, "googlechat": false, "ifttt": false, "join": true, "lark": true, "matrix": false,
	"mattermost": false, "notifiarr": false, "ntfy": true, "pushbullet": true, "pushover": true, "rocketchat": false, "signal": false,
	"slack": true, "teams": true, "wecom": false, "zulip": false,
}

// limits are the longest texts that services take, in bytes: lark and zulip as the library refuses what is longer, the others as
// their own documentation says. Where it counts characters, bytes are fewer. Bark's is that of a notification, 4096, with room for
// the rest of it; ntfy makes a file of what is longer, which not every server keeps; that of teams, 28 KB, is of the JSON around
// each line, too. Those of the other services are above what a message has, or the library sends several.
var limits = map[string]int{
	"bark": 3000, "googlechat": 4096, "join": 3000, "lark": 4096, "ntfy": 4096, "pushover": 1024, "rocketchat": 5000, "teams": 20000, "wecom": 2048, "zulip": 10000,
}

func chatSchemes() []string { return slices.Sorted(maps.Keys(chats)) }

// matrixLogin is the one service that connects when it is made: with a user it logs in.
const matrixLogin = "matrix"

// checkChat says whether shoutrrr can make something of an address.
func checkChat(address string) error {
	if u, err := url.Parse(address); err == nil && u.Scheme == matrixLogin && u.User.Username() != "" {
		return errors.New("write the access token in place of the password, without a user: matrix://:TOKEN@host/?rooms=ROOM")
	}
	_, err := newService(address)
	return err
}

// newService returns the service of an address. The library's own way to one loses what is wrong with the address.
func newService(address string) (types.Service, error) {
	var r router.ServiceRouter
	scheme, u, err := r.ExtractServiceName(address)
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	service, err := r.NewService(scheme)
	if err != nil {
		return nil, err
	}
	if u.Scheme != scheme { // as in generic+https
		custom, ok := service.(types.CustomURLService)
		if !ok {
			return nil, errors.New("it has no form with a plus sign; leave out what follows the sign")
		}
		if u, err = custom.GetConfigURLFromCustom(u); err != nil {
			return nil, err
		}
	}
	if err := service.Initialize(u, nil); err != nil {
		return nil, err
	}
	switch s := service.(type) { // those that show their clients; the others go by what RestrainDefaults restrains
	case *gotify.Service:
		restrain(s.GetHTTPClient())
	case *mattermost.Service:
		restrain(s.GetHTTPClient())
	case *ntfy.Service: // takes a client, and shows none
		c := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.Config.DisableTLSVerification},
		}}
		restrain(c)
		s.SetHTTPClient(c)
	case *pushover.Service:
		restrain(s.Client)
	case *rocketchat.Service:
		restrain(s.Client)
	}
	return service, nil
}

// chatTime is how long a request of a chat's library may take. It knows of no context.
const chatTime = 30 * time.Second

// RestrainDefaults has [http.DefaultClient] give up after 30 seconds at most, and it and every client that goes by
// [http.DefaultTransport] take a redirect for a failure. The clients of most chats are one or the other, and cannot be told
// otherwise. A program that uses chats calls it before it makes the first channel, and before other goroutines use either.
func RestrainDefaults() {
	restrain(http.DefaultClient)
	http.DefaultTransport = direct{http.DefaultTransport}
}

var errRedirect = errors.New("it answered with a redirect")

// restrain has a client give up, and take a redirect for a failure: the address is what was meant, and is in the Referer of what
// would follow. A transport that the client does not share goes by the proxy of the environment, as the others do, and keeps no
// connection.
func restrain(c *http.Client) {
	if c.Timeout == 0 || c.Timeout > chatTime {
		c.Timeout = chatTime
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return errRedirect }
	if own, ok := c.Transport.(*http.Transport); ok { // of one service, which is there for one message
		own.Proxy, own.DisableKeepAlives = http.ProxyFromEnvironment, true
	}
}

// direct makes the requests that were asked for, and none that an answer asked for. What a chat's library takes for success, and
// is none, is an error here.
type direct struct{ http.RoundTripper }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response != nil { // of which this one is a consequence
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errRedirect
	}
	answer, err := d.RoundTripper.RoundTrip(r)
	switch host := strings.ToLower(r.URL.Hostname()); {
	case err != nil && r.URL.Path == zulipPath:
		return &http.Response{StatusCode: http.StatusBadGateway, Status: err.Error(), Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	case err != nil:
		return nil, err
	case strings.HasSuffix(host, teamsHost):
		return judge(answer, teamsRefusal)
	case host == joinHost:
		return judge(answer, joinRefusal)
	}
	return answer, nil
}

// zulipPath is what zulip's library asks for. It looks at the answer even where there is none, and panics: it gets one that says
// why. Who else asks for that gets no success either.
const zulipPath = "/api/v1/messages"

// Services that answer 200 to what they refuse, and say so in the body, at which the library does not look.
const (
	teamsHost = ".webhook.office.com"
	joinHost  = "joinjoaomgcd.appspot.com"
)

// maxRefusal is how much is read of an answer that may be a refusal.
const maxRefusal = 4 << 10

// judge returns an answer, or an error if it has status 200 and a body that says what is wrong.
func judge(answer *http.Response, wrong func(body []byte) string) (*http.Response, error) {
	if answer.StatusCode != http.StatusOK {
		return answer, nil // which the library sees
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	if says := wrong(bytes.TrimSpace(body)); says != "" {
		return nil, errors.New("it answered " + answer.Status + ": " + says)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// teamsRefusal is the text of a connector that answers anything but 1, such as "Webhook message delivery failed with error:
// Microsoft Teams endpoint returned HTTP error 429".
func teamsRefusal(body []byte) string {
	if text := string(body); text != "1" {
		return text
	}
	return ""
}

func joinRefusal(body []byte) string {
	var says struct {
		Success *bool  `json:"success"`
		Message string `json:"errorMessage"`
	}
	if err := json.Unmarshal(body, &says); err != nil || says.Success == nil || *says.Success {
		return ""
	}
	return cmp.Or(says.Message, "success: false")
}

func newChat(address string) *chat { return &chat{address} }

// send does not end with ctx, of which the library knows nothing: [Channel.Send] does.
func (c *chat) send(_ context.Context, m *Message) (string, error) {
	// One for each message: it keeps what it was told last.
	service, err := newService(c.address)
	if err != nil {
		return "", err
	}
	scheme, _, _ := strings.Cut(c.address, ":")
	scheme, _, _ = strings.Cut(strings.ToLower(scheme), "+")
	text, params := m.Text, types.Params{}
	if chats[scheme] {
		params.SetTitle(m.Title)
		text = strings.TrimPrefix(strings.TrimPrefix(text, m.Title), "\n")
	}
	if limit, ok := limits[scheme]; ok {
		text = abridge(text, limit, m.Link)
	}
	return "", service.Send(text, &params)
}

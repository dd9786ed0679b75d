package notify

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// telegram sends by the Bot API (https://core.telegram.org/bots/api#sendmessage). Package shoutrrr has a sender for it that takes
// a connection that breaks for a message that arrived.
type telegram struct {
	opt   Options
	url   *url.URL
	chats []string
}

var botToken = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]{30,}$`)

// telegramHost is where bots are. Another one can be named in place of the word telegram, as for a server of one's own.
const telegramHost = "api.telegram.org"

func readTelegram(u *url.URL) (*telegram, error) {
	token := u.User.String()
	if plain, err := url.PathUnescape(token); err == nil {
		token = plain
	}
	query, err := url.ParseQuery(u.RawQuery)
	if !botToken.MatchString(token) || err != nil || strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("write telegram://TOKEN@telegram?chats=ID, with the token of a bot, such as 123456:ABC-fake")
	}
	t := &telegram{url: &url.URL{Scheme: "https", Host: u.Host, Path: "/bot" + token + "/sendMessage"}}
	if u.Host == "telegram" {
		t.url.Host = telegramHost
	}
	for key, values := range query {
		if key != "chats" {
			return nil, errors.New("what follows the question mark can be chats; leave out the rest")
		}
		for _, chat := range strings.Split(strings.Join(values, ","), ",") {
			t.chats = append(t.chats, strings.TrimSpace(chat))
		}
	}
	if len(t.chats) == 0 || len(t.chats) > maxReceivers {
		return nil, errors.New("write which chats get the message, such as chats=-1001234567890 or chats=@channel, with commas between several")
	}
	return t, nil
}

func newTelegram(u *url.URL, o Options) (*telegram, error) {
	t, err := readTelegram(u)
	if err != nil {
		return nil, err
	}
	t.opt = o
	return t, nil
}

// maxTelegram is the length of the longest message that the API takes, in characters.
const maxTelegram = 4096

// send tells every chat, also after one of them refused.
func (t *telegram) send(ctx context.Context, m *Message) (answer string, err error) {
	var refused []error
	for _, chat := range t.chats {
		body, err := json.Marshal(map[string]any{"chat_id": chat, "text": cut(m.Text, maxTelegram), "link_preview_options": map[string]bool{"is_disabled": true}})
		if err == nil {
			_, err = post(ctx, t.opt, t.url, body, nil) // it answers with the message and all who take part
		}
		refused = append(refused, err)
	}
	return "", errors.Join(refused...)
}

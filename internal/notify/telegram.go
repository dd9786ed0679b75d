package notify

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// telegram sends to one chat by the Bot API (https://core.telegram.org/bots/api#sendmessage). Package shoutrrr has a sender for it
// that takes a connection that breaks for a message that arrived.
type telegram struct {
	opt  Options
	url  *url.URL
	chat string
}

var botToken = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]{30,}$`)

// telegramHost is where bots are. Another one can be named in place of the word telegram, as for a server of one's own.
const telegramHost = "api.telegram.org"

// readTelegram reads an address: what to call, and the chats.
func readTelegram(u *url.URL) (call *url.URL, chats []string, err error) {
	token := u.User.String()
	if plain, err := url.PathUnescape(token); err == nil {
		token = plain
	}
	query, err := url.ParseQuery(u.RawQuery)
	if !botToken.MatchString(token) || err != nil || strings.Trim(u.Path, "/") != "" {
		return nil, nil, errors.New("write telegram://TOKEN@telegram?chats=ID, with the token of a bot, such as 123456:ABC-fake")
	}
	call = &url.URL{Scheme: "https", Host: u.Host, Path: "/bot" + token + "/sendMessage"}
	if u.Host == "telegram" {
		call.Host = telegramHost
	}
	for key, values := range query {
		if key != "chats" {
			return nil, nil, errors.New("what follows the question mark can be chats; leave out the rest")
		}
		for _, chat := range strings.Split(strings.Join(values, ","), ",") {
			chats = append(chats, strings.TrimSpace(chat))
		}
	}
	if len(chats) == 0 || len(chats) > maxReceivers {
		return nil, nil, errors.New("write which chats get the message, such as chats=-1001234567890 or chats=@channel, with commas between several")
	}
	return call, chats, nil
}

// newTelegram returns what sends to each of the chats.
func newTelegram(u *url.URL, o Options) (senders []sender, err error) {
	call, chats, err := readTelegram(u)
	for _, chat := range chats {
		senders = append(senders, &telegram{o, call, chat})
	}
	return senders, err
}

// maxTelegram is the length of the longest message that the API takes, in characters.
const maxTelegram = 4096

func (t *telegram) send(ctx context.Context, m *Message) (string, error) {
	body, err := json.Marshal(map[string]any{"chat_id": t.chat, "text": abridge(m.Text, maxTelegram, m.Link), "link_preview_options": map[string]bool{"is_disabled": true}})
	if err != nil {
		return "", err
	}
	_, err = post(ctx, t.opt, t.url, body, nil)
	return "", err // it answers with the message and all who take part
}

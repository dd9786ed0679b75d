package notify

import (
	"errors"
	"net/url"
	"strings"
)

// shapes are how the addresses of chats look: for errors, because shoutrrr's do not say it, and for the page.
var shapes = map[string]string{
	"bark": "bark://:DEVICEKEY@HOST", "discord": "discord://TOKEN@ID", "generic": "generic+https://HOST/PATH?template=json", "gotify": "gotify://HOST/TOKEN",
	"googlechat": "googlechat://chat.googleapis.com/v1/spaces/SPACE/messages?key=KEY&token=TOKEN", "ifttt": "ifttt://KEY/?events=EVENT",
	"join": "join://:KEY@join/?devices=DEVICE", "lark": "lark://open.larksuite.com/TOKEN?secret=SECRET", "matrix": "matrix://:TOKEN@HOST/?rooms=ROOM",
	"mattermost": "mattermost://USER@HOST/TOKEN/CHANNEL", "notifiarr": "notifiarr://KEY?channel=ID", "ntfy": "ntfy://USER:PASSWORD@HOST/TOPIC",
	"pushbullet": "pushbullet://TOKEN", "pushover": "pushover://:TOKEN@USER",
	"rocketchat": "rocketchat://HOST/A/B", "signal": "signal://USER:PASSWORD@HOST/+FROM/+TO", "slack": "slack://hook:A-B-C@webhook",
	"teams": "teams://GROUP@TENANT/ID/OWNER/EXTRA?host=ORGANIZATION.webhook.office.com", "wecom": "wecom://KEY",
	"zulip": "zulip://BOT:KEY@HOST?stream=STREAM&topic=TOPIC",
}

// checkReceiver refuses the address that a chat gives out for its incoming webhooks: it reads no webhook of ours, signed or not.
func checkReceiver(u *url.URL) error {
	chat, host := "", strings.ToLower(u.Hostname())
	switch {
	case host == "hooks.slack.com":
		chat = "slack"
	case host == "discord.com" || host == "discordapp.com":
		chat = "discord"
	case strings.HasSuffix(host, ".webhook.office.com"):
		chat = "teams"
	case host == "chat.googleapis.com":
		chat = "googlechat"
	default:
		return nil
	}
	return errors.New("this is a chat, which does not read signed webhooks; write its address as " + shapes[chat] + ", without secrets")
}

package provider

import "github.com/hookonce/hookonce/provider/spec"

// Telegram returns the provider for the webhooks of Telegram bots. The secrets are the secret_token that setWebhook was
// called with. It panics if a secret is missing or empty.
//
// The key is the update_id. Nothing is signed: the token says who sends, and not what.
func Telegram(secrets ...string) *spec.Provider {
	return must(spec.New(telegramSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func telegramSpec() spec.Spec {
	return spec.Spec{
		Name:      "telegram",
		Title:     "Telegram bots",
		Secret:    "the secret_token that setWebhook is called with: letters, digits, _ and -, up to 256",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "header:X-Telegram-Bot-Api-Secret-Token"}}},
		Event: spec.Extract{
			Key: [][]spec.Value{{"json:$.update_id"}},
			Resource: []spec.Value{
				"json:$.message.chat.id", "json:$.edited_message.chat.id", "json:$.channel_post.chat.id",
				"json:$.edited_channel_post.chat.id", "json:$.callback_query.message.chat.id", "json:$.my_chat_member.chat.id",
				"json:$.chat_member.chat.id", "json:$.chat_join_request.chat.id",
			},
			Time: []spec.Moment{at("json:$.message.date", spec.Seconds), at("json:$.channel_post.date", spec.Seconds)},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable, Manual: spec.NotSent},
		Limits:  spec.Limits{Retry: day},
		Headers: []string{"X-Telegram-*"},
		Example: spec.Template{ID: "738150001", Object: "1001", Body: telegramExample},
		Sources: []spec.Source{
			stated("token, retries, any 2xx accepts, Retry-After, 410 for 23 hours ends the webhook", "tdlib/telegram-bot-api: telegram-bot-api/WebhookActor.cpp"),
			stated("an update waits for a day", "tdlib/telegram-bot-api: telegram-bot-api/Client.cpp"),
			stated("key recognises repeated updates", "core.telegram.org/bots/api, Update"),
			stated("the secret is the receiver's choice", "core.telegram.org/bots/api, setWebhook"),
			notSourced("deadline"),
		},
		Traps: []string{
			"without a secret_token nobody can tell who sends: set one, or every update is refused here",
			"a body in the answer is run as a call of the bot's API: answer without one",
			"the ids of messages repeat from chat to chat, and an edited message keeps its own: as the key they lose updates",
			"after a week without updates the next id is chosen at random: it tells copies, and not the order",
			"updates of one bot have one sequence of ids: two bots need two sources",
		},
	}
}

const telegramExample = `{
  "update_id": {{id}},
  "message": {
    "message_id": 1001,
    "from": {"id": {{object}}, "is_bot": false, "first_name": "Example", "language_code": "en"},
    "chat": {"id": {{object}}, "first_name": "Example", "type": "private"},
    "date": {{unix}},
    "text": "/order 1001"
  }
}`

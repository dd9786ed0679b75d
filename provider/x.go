package provider

import "github.com/hookonce/hookonce/provider/spec"

// X returns the provider for webhooks of X (Twitter): the Account Activity API, and the X Activity API
// after it. The secrets are the consumer secrets of the app. It panics if a secret is missing or empty.
// The challenge (CRC), GET with crc_token, is answered.
//
// The key of an activity is the subscribed user together with the post, message, like or relation: the
// same post reaches two subscribed users as two events. The signature covers it. Events of the X
// Activity API, typing and read notices pass through unkeyed. No time is signed.
func X(secrets ...string) *spec.Provider {
	return must(spec.New(xSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func xSpec() spec.Spec {
	return spec.Spec{
		Name:   "x",
		Title:  "X",
		Secret: "the app's consumer secret",
		Verify: []spec.Verify{bodyMAC("X-Twitter-Webhooks-Signature", "sha256=", spec.Base64)},
		Split: &spec.Split{Items: []spec.Value{
			"json:$.tweet_create_events[*]", "json:$.tweet_delete_events[*]", "json:$.favorite_events[*]", "json:$.direct_message_events[*]",
			"json:$.follow_events[*]", "json:$.unfollow_events[*]", "json:$.block_events[*]", "json:$.unblock_events[*]",
			"json:$.mute_events[*]", "json:$.unmute_events[*]",
			"json:$.direct_message_indicate_typing_events[*]", "json:$.direct_message_mark_read_events[*]",
		}},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"const:post", "parent:$.for_user_id", "item:$.id_str"},
				{"const:delete", "parent:$.for_user_id", "item:$.status.id"},
				{"const:like", "parent:$.for_user_id", "item:$.favorited_status.id_str", "item:$.id"},
				{"const:message", "parent:$.for_user_id", "item:$.type", "item:$.id"},
				{"const:relation", "parent:$.for_user_id", "item:$.type", "item:$.created_timestamp", "item:$.source.id", "item:$.target.id"},
			},
			AttemptID: []spec.Value{"item:$.data.event_uuid"},
			Type:      []spec.Value{"item:$.data.event_type", "item:$.type"},
			Time:      []spec.Moment{at("item:$.timestamp_ms", spec.Millis), at("item:$.created_timestamp", spec.Millis)},
			Resource:  []spec.Value{"item:$.id_str", "item:$.status.id", "item:$.favorited_status.id_str"},
			Tenant:    []spec.Value{"parent:$.for_user_id", "item:$.data.filter.user_id"},
		},
		Answer: spec.Answer{Deadline: 10 * second},
		Handshakes: []spec.Handshake{{
			Method:      "GET",
			Echo:        "query:crc_token",
			Pattern:     `[A-Za-z0-9+/=_.~-]{1,256}`, // nothing that a JSON object can be
			Code:        &spec.ChallengeCode{Kind: spec.HMAC, Encoding: spec.Base64},
			ContentType: "application/json",
			Body:        `{"response_token":"sha256={{code}}"}`,
		}},
		Limits:  spec.Limits{Manual: day}, // a replay goes back so far
		Headers: []string{"X-Twitter-*"},
		Example: spec.Template{ID: "1890123456789012345", Type: "tweet_create_events", Body: xExample},
		Sources: []spec.Source{
			stated("signature, challenge, deadline, replay, user of the subscription", "xdevplatform/docs: x-api/webhooks, x-api/account-activity"),
			stated("fields of activities", "developer.x.com, Account Activity data objects"),
			stated("envelope of the X Activity API", "docs.x.com/x-api/activity/event-payloads"),
			reported("keys of likes and relations", "inferred from the fields of the activities"),
			notSourced("retries"),
			notSourced("whether event_uuid is the same in a replay"),
		},
		Traps: []string{
			"without for_user_id in the key, one user's copy of a post that concerns two subscribed users is lost",
			"a post and its deletion have the same id",
			"posts have no type of their own: the name of the array is what tells them apart",
			"event_uuid of the X Activity API identifies the delivery: its events pass through unkeyed",
			"the challenge comes again all the time: without an answer within a day or so the webhook is invalid",
		},
	}
}

const xExample = `{
  "for_user_id": "1000000000000000001",
  "tweet_create_events": [
    {
      "created_at": "Tue Feb 03 04:05:06 +0000 2026",
      "id_str": "{{id}}",
      "text": "Two brass hooks, please @hookshop",
      "source": "example",
      "user": {"id_str": "1000000000000000002", "name": "Example", "screen_name": "example"},
      "is_quote_status": false,
      "favorited": false,
      "retweeted": false,
      "filter_level": "low",
      "lang": "en",
      "timestamp_ms": "{{millis}}"
    }
  ]
}`

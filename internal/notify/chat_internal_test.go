package notify

import (
	"net/http"
	"testing"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/mattermost"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/gotify"
)

// Chats that make a transport of their own, for each message, go by the proxy of the environment like the others, and leave no
// connection behind.
func TestTransportsOfChats(t *testing.T) {
	for _, address := range []string{"gotify://127.0.0.1:1/Aaa.bbb.ccc.ddd", "mattermost://bot@127.0.0.1:1/fakeMattermostToken/fakeChannel"} {
		service, err := newService(address)
		if err != nil {
			t.Fatal(err)
		}
		var client *http.Client
		switch s := service.(type) {
		case *gotify.Service:
			client = s.GetHTTPClient()
		case *mattermost.Service:
			client = s.GetHTTPClient()
		}
		own, ok := client.Transport.(*http.Transport)
		if !ok || own.Proxy == nil || !own.DisableKeepAlives || client.Timeout == 0 || client.Timeout > chatTime {
			t.Errorf("%T has %+v", service, client)
		}
	}
}

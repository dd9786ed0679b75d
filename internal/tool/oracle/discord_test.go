package oracle

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"

	"github.com/bwmarrin/discordgo"

	"github.com/hookonce/hookonce"
)

// discordSDK is the community's library, for interactions and for webhook events alike.
func discordSDK(provider string) sdk {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	public := private.Public().(ed25519.PublicKey)
	return sdk{
		module:   "github.com/bwmarrin/discordgo",
		provider: provider,
		secret:   hex.EncodeToString(public),
		private:  true,
		wrap:     inJSON,
		accepts: func(req *hookonce.Request) bool {
			return discordgo.VerifyInteraction(wire(req), public)
		},
		sign: func(req *hookonce.Request) error {
			signed := append([]byte(unix(req.Now)), req.Body...)
			req.Header.Set("X-Signature-Timestamp", unix(req.Now))
			req.Header.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(private, signed)))
			return nil
		},
		laxer: map[string]string{"another case in the signature": anyCase, "upper case in the signature": anyCase},
	}
}

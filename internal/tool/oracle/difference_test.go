package oracle

// everywhere says why we reject what nearly every library accepts.
var everywhere = map[string]string{
	"a second signature": firstOfSeveral,
	"a second id":        firstOfSeveral,
	"a second time":      firstOfSeveral,
}

// Reasons that hold for several libraries.
const (
	firstOfSeveral = "the library reads the first of several values; another reader may read the last, so none is believed"
	anyCase        = "the library decodes hexadecimal digits of either case; the sender writes lower case, and one spelling is enough"
	emptyEntry     = "an entry that is empty is ignored like any unknown entry, wherever the sender may come to add one"
	entryRest      = "the library ignores what follows a second comma; nothing that is not the signature is taken for one"
	strayBits      = "the library ignores bits of base64 that belong to no byte, so several texts are one signature; one spelling is enough"
	noTolerance    = "the library leaves the signed time to the caller"
	pastOnly       = "the library compares with times in the past only; a signature that is valid tomorrow can be kept until then"
	signedOnce     = "the library refuses what is older than some minutes; nobody says that a retry is signed anew, so what is as old as the last one is taken"
	noEmptyBody    = "the library does not take an empty body, even if it is signed; no sender sends one"
)

package redisstore

// LookupHash is how servers know the script that only reads.
var LookupHash = lookupScript.hash

// Findings returns what is wrong with the server that says text of itself.
func Findings(text, addr string) []Finding { return parseInfo(text).findings(addr) }

package ingest

import "strings"

// PathPrefix is what the path of every source begins with.
const PathPrefix = "/in/"

// sourceName returns the name in a path of the form /in/<name>, or the empty string. One slash at
// the end is tolerated, because a sender that is told to go elsewhere does not follow; any other
// spelling is not a source.
func sourceName(path string) string {
	name, ok := strings.CutPrefix(path, PathPrefix)
	if !ok {
		return ""
	}
	name = strings.TrimSuffix(name, "/")
	if strings.Contains(name, "/") {
		return ""
	}
	return name
}

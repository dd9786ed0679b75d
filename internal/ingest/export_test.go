package ingest

// PatternMatches reports whether a pattern for event types matches one.
func PatternMatches(text, eventType string) bool {
	return patterns([]string{text})[0].matches(eventType)
}

package api

// Addresses returns of how many addresses the guard knows that they sent a wrong token.
func (g *Guard) Addresses() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tries.Len()
}

// MaskJSON is what a masked body shows.
var MaskJSON = maskJSON

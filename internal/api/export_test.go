package api

// Addresses returns of how many addresses the guard knows that they sent a wrong token.
func (g *Guard) Addresses() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tries.Len()
}

// Mask is what a masked body shows, and MaskJSON what one that is JSON does.
var (
	Mask     = mask
	MaskJSON = maskJSON
)

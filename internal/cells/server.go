package cells

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/problem"
)

// Handler answers other cells, which have shown that they are some: what is handed on goes to forwarded, with the path of
// its source.
func (c *Cells) Handler(prefix string, forwarded http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+mapPath, c.serveMap)
	mux.HandleFunc("POST "+knownPath, c.serveKnown)
	mux.HandleFunc("POST "+forwardPath, func(w http.ResponseWriter, r *http.Request) {
		source, _ := strings.CutPrefix(r.URL.Path, forwardPath)
		own := r.Clone(r.Context())
		own.URL.Path = prefix + source
		forwarded.ServeHTTP(w, own)
	})
	return mux
}

// ServeMaps answers a cell that has other maps with those that count here.
func (c *Cells) ServeMaps(w http.ResponseWriter) { c.tell(w, http.StatusConflict) }

func (c *Cells) tell(w http.ResponseWriter, status int) {
	writeJSON(w, status, tidings{c.opt.Self, c.state.Load().chain.contents()})
}

// serveMap takes over newer maps, and tells of those that count then.
func (c *Cells) serveMap(w http.ResponseWriter, r *http.Request) {
	var theirs tidings
	if !readJSON(w, r, &theirs) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	err := c.Refresh(ctx)
	if err == nil {
		err = c.learn(ctx, theirs.Cell, &theirs)
	}
	if err != nil && !errors.Is(err, ErrMaps) && !errors.Is(err, ErrConflict) {
		c.refuse(w, err)
		return
	}
	c.tell(w, http.StatusOK)
}

// serveKnown says what is on record of keys, after the fence is as new as the question.
func (c *Cells) serveKnown(w http.ResponseWriter, r *http.Request) {
	var q question
	if !readJSON(w, r, &q) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	if !c.has(ctx, q.Map) {
		c.ServeMaps(w)
		return
	}
	found, err := c.opt.Known(ctx, q.Source, q.Keys)
	if err != nil {
		c.refuse(w, err)
		return
	}
	if found == nil {
		found = map[string]journal.Known{}
	}
	writeJSON(w, http.StatusOK, reply{found})
}

// has reports whether the maps here are those that a cell names, with a look into the store if they were not.
func (c *Cells) has(ctx context.Context, id string) bool {
	if c.state.Load().chain.ID() == id {
		return true
	}
	return c.Refresh(ctx) == nil && c.state.Load().chain.ID() == id
}

// refuse answers a cell that cannot be answered now.
func (c *Cells) refuse(w http.ResponseWriter, err error) {
	c.opt.Logger.Warn("cells: another cell cannot be answered", "error", err)
	problem.Unavailable.New("The store of this cell does not answer.").Write(w)
}

func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTold))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		http.Error(w, "this is not what cells say", http.StatusBadRequest)
	}
	return err == nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// Has reports whether the maps here are those that a hop was placed by, with a look into the store if they were not.
func (c *Cells) Has(ctx context.Context, hop *Hop) bool { return c.has(ctx, hop.Map) }

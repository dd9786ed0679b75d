package dashboard

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/hookonce/hookonce/internal/dashboard/frame"
	"github.com/hookonce/hookonce/internal/problem"
)

// loginView is the form that asks for a token.
type loginView struct {
	To    string           `json:"to"` // where it leads
	Wrong *problem.Details `json:"wrong,omitempty"`
}

// loginAddress returns that of the form which leads to a page.
func loginAddress(to string) string { return "/login?" + url.Values{"to": {to}}.Encode() }

func (d *dashboard) loginForm(w http.ResponseWriter, r *http.Request) {
	d.frame.Write(w, r, http.StatusOK, "login", &page{Title: "Log in", Data: loginView{To: within(r.URL.Query().Get("to"))}})
}

// login takes a token once, in the body of a form and nowhere else.
func (d *dashboard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, frame.MaxForm)
	to := within(r.PostFormValue("to"))
	if wrong := d.opt.Guard.Login(w, r, r.PostFormValue("token")); wrong != nil {
		if !frame.WantsPage(r) {
			wrong.Write(w)
			return
		}
		d.frame.Write(w, r, wrong.Status, "login", &page{Title: "Log in", Data: loginView{To: to, Wrong: wrong}})
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (d *dashboard) logout(w http.ResponseWriter, r *http.Request) {
	d.opt.Guard.Logout(w)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// within returns a path of ours, whatever somebody wrote into a link.
func within(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}

package route

import (
	"net"
	"net/http"
)

// Admit is [FromHTTP] and [Normalization.Apply] for an http.Handler of an http.Server, whose port is that at which
// the request came in. A request that goes no further it answers, with the status 400 or the redirect; ok is false then.
func (n *Normalization) Admit(w http.ResponseWriter, r *http.Request) (req Request, ok bool) {
	req = FromHTTP(r)
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	redirect, err := n.Apply(&req, local.AddrPort().Port())
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case redirect != "":
		http.Redirect(w, r, redirect, http.StatusTemporaryRedirect)
	default:
		return req, true
	}
	return req, false
}

// Answer answers a request whose route does not forward it, for an http.Handler: with its redirect, its direct
// response, or the status 404 where it has neither. It says whether it did; if not, the request is to be forwarded.
func (r *Route) Answer(w http.ResponseWriter, of *http.Request, req *Request) bool {
	switch r.Action() {
	case ActionForward:
		return false
	case ActionRedirect:
		location, status := r.Redirect(req)
		http.Redirect(w, of, location, status)
	case ActionRespond:
		w.WriteHeader(r.Response().Status)
		_, _ = w.Write(r.Response().Body)
	default:
		http.Error(w, "the route forwards nothing", http.StatusNotFound)
	}
	return true
}

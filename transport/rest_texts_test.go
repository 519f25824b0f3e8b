package transport_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// headed answers a poll with a header.
func headed(status int, key, value string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(key, value)
		w.WriteHeader(status)
	}
}

// Whatever a server sends in place of a response, the error is short and quotes no secret.
//
// spec: H-3 REST-2
func TestRESTErrorsAreShort(t *testing.T) {
	const secret = "MARK3R"
	long := strings.Repeat("x", 60<<10) + secret
	tests := []struct {
		name   string
		answer http.HandlerFunc
		text   string
	}{
		{"content type", headed(200, "Content-Type", long), "what is no DiscoveryResponse"},
		{"encoding", headed(200, "Content-Encoding", long), "which was not offered"},
		{"type URL", ofType(long), "the server answers with resources of type"},
		{"host of a redirect", headed(307, "Location", "http://"+long), "it leads to another host, http://xxx"},
		{"user of a redirect", headed(307, "Location", "http://"+secret+":"+secret+"@other/"+secret+"?k="+secret), "it leads to another host, http://other"},
		{"a Location that is not a URL", headed(307, "Location", "http://%zz/"+secret), "its Location is not a URL"},
		{"a Location without a scheme", headed(308, "Location", ":"+secret), "its Location is not a URL"},
		{"text", answerStatus(500), "500 Internal Server Error"},
		{"JSON without a type", untyped(`{"resources":[{"private_key":"` + secret + `"}]}`), "500 Internal Server Error"},
		{"YAML without a type", untyped("private_key:\n  inline_string: " + secret), "500 Internal Server Error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inRESTBubble(t, func(r *restRig) {
				r.srv.Answer(tt.answer)
				r.ask("", "a")
				select {
				case err := <-r.end:
					text := err.Error()
					if !strings.Contains(text, tt.text) || strings.Contains(text, secret) || len(text) > 1024 {
						t.Errorf("the stream ends with %d bytes, %.2000s; want %q in a short text without the secret", len(text), text, tt.text)
					}
				case <-time.After(patience):
					t.Error("the stream does not end")
				}
			})
		})
	}
}

// untyped fails with a body of which package http says that it is a plain text.
func untyped(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(body))
	}
}

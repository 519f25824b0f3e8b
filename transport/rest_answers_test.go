package transport_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// answerBody answers polls with a body.
func answerBody(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body)) // to a client that may be gone
	}
}

// answerStatus answers polls with a status and its name.
func answerStatus(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, http.StatusText(code), code) }
}

// answerRedirect sends polls elsewhere: with code 307 or 308 as they are, with others as a GET.
func answerRedirect(code int, location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(code)
	}
}

// answerHang never answers a poll, until its client gives up.
func answerHang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// answerEndless answers a poll with the beginning of a response that has no end, until its
// client gives up.
func answerEndless(w http.ResponseWriter, r *http.Request) {
	piece := []byte(`{"version_info":"` + strings.Repeat("1", 1<<16))
	for r.Context().Err() == nil {
		if _, err := w.Write(piece); err != nil {
			return
		}
		piece = piece[len(piece)-1<<16:]
	}
}

// answerBomb answers polls with a response that is small as it is sent, and of a size in bytes when it
// is decompressed.
func answerBomb(tb testing.TB, size int) http.HandlerFunc {
	tb.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	piece := bytes.Repeat([]byte("1"), 1<<16)
	_, err := z.Write([]byte(`{"version_info":"`))
	for written := 0; written < size && err == nil; written += len(piece) {
		_, err = z.Write(piece)
	}
	if err == nil {
		_, err = z.Write([]byte(`"}`))
	}
	if err = errors.Join(err, z.Close()); err != nil {
		tb.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes()) // to a client that gives up
	}
}

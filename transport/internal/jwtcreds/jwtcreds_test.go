package jwtcreds

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// jwt makes a token with the given payload.
func jwt(payload string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"RS256"}`)) + "." + enc([]byte(payload)) + "." + enc([]byte("signature?>"))
}

// lasting makes a token that ends after d; its id tells it from others.
func lasting(id string, d time.Duration) string {
	return jwt(fmt.Sprintf(`{"iss":"test","jti":%q,"exp":%d}`, id, time.Now().Add(d).Unix()))
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func call(c credentials.PerRPCCredentials) (string, error) {
	md, err := c.GetRequestMetadata(context.Background(), "https://xds.example.com/x")
	if err == nil && len(md) != 1 {
		err = fmt.Errorf("%d headers", len(md))
	}
	return md["authorization"], err
}

func wantToken(t *testing.T, c credentials.PerRPCCredentials, want string) {
	t.Helper()
	if got, err := call(c); err != nil || got != "Bearer "+want {
		t.Fatalf("after %s: %q, %v; want %q", age(), got, err, want)
	}
}

func wantError(t *testing.T, c credentials.PerRPCCredentials, code codes.Code, text string) {
	t.Helper()
	if got, err := call(c); status.Code(err) != code || !strings.Contains(fmt.Sprint(err), text) {
		t.Fatalf("after %s: %q, %v; want %v with %q", age(), got, err, code, text)
	}
}

// age is the time since the start of a synctest bubble.
func age() time.Duration {
	return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
}

// pass lets fake time go by, and what is started meanwhile finish.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// gRFC A97: a token is used from the cache until 30 s before its end, and read anew in the
// last minute before that, without a call that waits.
// spec: BOOT-4
func TestLifeOfATokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		c := New(file)
		first, second, third := lasting("1", 10*time.Minute), lasting("2", 20*time.Minute), lasting("3", 30*time.Minute)
		write(t, file, first+"\n")
		wantToken(t, c, first)
		write(t, file, second)
		pass(8*time.Minute + 29*time.Second)
		wantToken(t, c, first)
		synctest.Wait()
		pass(time.Second) // 8m30s: a minute before the cached end
		wantToken(t, c, first)
		synctest.Wait() // for the read in the background
		wantToken(t, c, second)

		// Nobody calls while the second token ends: the next call waits for the file.
		write(t, file, third)
		pass(11 * time.Minute)
		wantToken(t, c, third)
	})
}

func TestRefreshFailsWhileTheTokenLives(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		c := New(file)
		token := lasting("1", 10*time.Minute)
		write(t, file, token)
		wantToken(t, c, token)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		pass(9 * time.Minute)
		for range 5 {
			wantToken(t, c, token)
			synctest.Wait()
		}
		pass(30 * time.Second)
		wantError(t, c, codes.Unavailable, "no such file")
	})
}

func TestBackoff(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		c := New(file)
		wantError(t, c, codes.Unavailable, file)
		token := lasting("1", time.Hour)
		write(t, file, token)
		wantError(t, c, codes.Unavailable, "no such file") // from the first attempt
		pass(1200 * time.Millisecond)                      // one second, and its jitter
		wantToken(t, c, token)

		// A good read starts the backoff over.
		pass(time.Hour)
		wantError(t, c, codes.Unauthenticated, "expired")
		token = lasting("2", time.Hour)
		write(t, file, token)
		wantError(t, c, codes.Unauthenticated, "expired")
		pass(1200 * time.Millisecond)
		wantToken(t, c, token)
	})
}

func TestWaits(t *testing.T) {
	for n, want := range []time.Duration{1e9, 1.6e9, 2.56e9, 4.096e9, 6.5536e9, 10.48576e9, 16.777216e9, 26.8435456e9, 30e9, 30e9} {
		for range 100 {
			got := wait(n)
			if low, high := want*8/10-1, want*12/10+1; got < low || got > high {
				t.Fatalf("wait %d: %v, want between %v and %v", n, got, low, high)
			}
		}
	}
	if got := wait(1 << 30); got > 36*time.Second {
		t.Errorf("wait after very many: %v", got)
	}
}

func TestTokens(t *testing.T) {
	year := fmt.Sprint(time.Now().Add(365 * 24 * time.Hour).Unix())
	padded := strings.Split(jwt(`{"exp":`+year+` }`), ".")
	padded[1] = base64.URLEncoding.EncodeToString([]byte(`{"exp":` + year + ` }`))
	tests := []struct{ name, token, want string }{
		{"good", jwt(`{"exp":` + year + `}`), ""},
		{"fraction", jwt(`{"exp":` + year + `.75}`), ""},
		{"exponent", jwt(`{"exp":1e11}`), ""},
		{"for ever", jwt(`{"exp":1e300}`), ""},
		{"padded", strings.Join(padded, "."), ""},
		{"about to end", lasting("", 10*time.Second), ""},
		{"empty", " \n", "token: empty"},
		{"no jwt", "password", "1 parts between dots where a JWT has 3"},
		{"four parts", jwt(`{"exp":`+year+`}`) + ".x", "4 parts"},
		{"two lines", strings.Replace(jwt(`{"exp":`+year+`}`), ".", ".\n", 1), "a character at offset"},
		{"not base64", "a.b=c.d", "payload: illegal base64"},
		{"not json", jwt(`exp`), "payload: invalid character looking for beginning of value"},
		{"not an object", jwt(`[1]`), `payload: want an object in which "exp" is a number`},
		{"no exp", jwt(`{"iat":1}`), `no "exp" claim`},
		{"null exp", jwt(`{"exp":null}`), `no "exp" claim`},
		{"text exp", jwt(`{"exp":"` + year + `"}`), `payload: want an object in which "exp" is a number`},
		{"number that is too large", jwt(`{"exp":1e31337}`), `payload: want an object in which "exp" is a number`},
		{"expired", jwt(`{"exp":1700000000}`), "expired at 2023-11-14T22:13:20Z"},
		{"negative", jwt(`{"exp":-1e300}`), "expired at 1970-01-01T00:00:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "token")
			write(t, file, tt.token)
			if tt.want == "" {
				wantToken(t, New(file), tt.token)
				return
			}
			wantError(t, New(file), codes.Unauthenticated, "jwt token file "+file+": token: ")
			wantError(t, New(file), codes.Unauthenticated, tt.want)
			if _, err := call(New(file)); strings.Contains(err.Error(), tt.token) {
				t.Errorf("%v tells the token", err)
			}
		})
	}
}

// A token that ends within 30 s is used by the calls that waited for it, but not kept.
func TestLateTokenIsNotCached(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		c := New(file)
		late, good := lasting("1", 20*time.Second), lasting("2", time.Hour)
		write(t, file, late)
		wantToken(t, c, late)
		write(t, file, good)
		wantToken(t, c, good)
	})
}

func TestConcurrentUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	tokens := map[string]bool{}
	for i := range 20 {
		tokens["Bearer "+lasting(fmt.Sprint(i), time.Minute)] = true
	}
	var wg sync.WaitGroup
	c := New(file)
	replace := func(token string) error {
		err := os.WriteFile(file+".new", []byte(strings.TrimPrefix(token, "Bearer ")), 0o600)
		return errors.Join(err, os.Rename(file+".new", file))
	}
	for token := range tokens {
		if err := replace(token); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range 50 {
				if got, err := call(c); err != nil || !tokens[got] {
					t.Errorf("%q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestAsksForASecureChannel(t *testing.T) {
	if !New("f").RequireTransportSecurity() {
		t.Error("a token would be sent in the clear")
	}
}

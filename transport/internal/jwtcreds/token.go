package jwtcreds

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/regular"
)

// load reads a token and the time of its end. Its errors are status errors that name the
// file.
func load(file string) (string, time.Time, error) {
	data, err := regular.Read(file, regular.MaxToken)
	if err != nil {
		return "", time.Time{}, status.Errorf(codes.Unavailable, "jwt token file: %v", regular.Named(file, err))
	}
	token := strings.TrimSpace(string(data))
	expiry, err := expiryOf(token)
	if err == nil && !time.Now().Before(expiry) {
		err = fmt.Errorf("expired at %s", expiry.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return "", time.Time{}, status.Errorf(codes.Unauthenticated, "jwt token file %s: token: %v", file, err)
	}
	return token, expiry, nil
}

// fromContext is the error of a call that ended before the file was read.
func fromContext(ctx context.Context, file string) error {
	s := status.FromContextError(ctx.Err())
	return status.Errorf(s.Code(), "waiting for jwt token file %s: %s", file, s.Message())
}

// expiryOf returns the "exp" claim of a token in JWS compact form (RFC 7515, RFC 7519).
// Its signature is the server's to check.
func expiryOf(token string) (time.Time, error) {
	if token == "" {
		return time.Time{}, errors.New("empty")
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, fmt.Errorf("%d parts between dots where a JWT has 3", len(parts))
	}
	if i := strings.IndexFunc(token, foreign); i >= 0 {
		return time.Time{}, fmt.Errorf("a character at offset %d that no JWT has", i)
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}, fmt.Errorf("payload: %w", err)
	}
	return expClaim(payload)
}

// foreign reports a character that is neither base64url nor a dot, and that might end a
// header line.
func foreign(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_.=", r)
}

// expClaim reads seconds since 1970, which may have a fraction.
func expClaim(payload []byte) (time.Time, error) {
	var claims struct {
		Exp *float64 `json:"exp"`
	}
	err := json.Unmarshal(payload, &claims)
	// H-3: the texts of the errors quote the token.
	switch {
	case errors.As(err, new(*json.UnmarshalTypeError)):
		return time.Time{}, errors.New(`payload: want an object in which "exp" is a number`)
	case err != nil:
		return time.Time{}, fmt.Errorf("payload: %s", redact.SyntaxJSON(err))
	}
	if claims.Exp == nil {
		return time.Time{}, errors.New(`no "exp" claim`)
	}
	const lastYear = 253402300799 // the end of the year 9999; beyond it times overflow
	seconds := min(max(*claims.Exp, 0), lastYear)
	return time.UnixMilli(int64(seconds * 1000)), nil
}

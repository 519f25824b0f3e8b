package transport

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// headerPairs lists keys and values in turn. gRPC would fail every stream for a header
// that it cannot send and drop one that it sets itself, so both are refused here.
func headerPairs(lists ...[]bootstrap.Header) ([]string, error) {
	var pairs []string
	var faults []error
	for _, list := range lists {
		for _, h := range list {
			key := strings.ToLower(h.Key)
			if err := checkHeader(key, h.Value); err != nil {
				faults = append(faults, fmt.Errorf("header %q: %w", h.Key, err))
			}
			pairs = append(pairs, key, h.Value)
		}
	}
	return pairs, errors.Join(faults...)
}

func checkHeader(key, value string) error {
	switch {
	case key == "":
		return errors.New("the key is empty")
	case strings.HasPrefix(key, ":"), strings.HasPrefix(key, "grpc-"),
		key == "content-type", key == "user-agent", key == "te":
		return errors.New("the key is gRPC's own")
	case strings.ContainsFunc(key, notInKey):
		return errors.New("the key has a character other than a-z, 0-9, -, _ or a full stop")
	case !strings.HasSuffix(key, "-bin") && strings.ContainsFunc(value, notPrintable):
		return errors.New("the value is not printable ASCII, and the key does not end in -bin")
	}
	return nil
}

func notInKey(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
		return false
	}
	return true
}

func notPrintable(r rune) bool { return r < ' ' || r > '~' }

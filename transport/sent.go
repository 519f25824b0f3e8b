package transport

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/internal/redact"
)

const (
	// leastSecret is how short a secret may be, in bytes: shorter texts may be words of any sentence.
	leastSecret = 8
	// tokensKept is how many secrets are known for each call credential, the last given: a stream may outlive some.
	tokensKept = 8
)

// sent is what may be secret of all that a server is sent: values of headers, and what call credentials give. Some
// servers, and proxies before them, quote what they refuse.
type sent struct {
	mu     sync.Mutex
	fixed  []string
	tokens []string // the last given at the end
	most   int      // of tokens
}

// add notes values of headers. It is called before anything is sent.
func (s *sent) add(values ...string) {
	for _, value := range values {
		s.fixed = append(s.fixed, secretsOf(value)...)
	}
}

// secretsOf are the value of a header, and what follows the name of a scheme in it.
func secretsOf(value string) (all []string) {
	_, credential, _ := strings.Cut(value, " ")
	for _, text := range []string{value, strings.TrimSpace(credential)} {
		if len(text) >= leastSecret {
			all = append(all, text)
		}
	}
	return all
}

// hide takes out of the text of an error what was sent. H-3: it reaches logs and events.
func (s *sent) hide(text string) string {
	s.mu.Lock()
	all := slices.Concat(s.fixed, s.tokens)
	s.mu.Unlock()
	// The longest first, since one may hold another.
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, secret := range all {
		text = strings.ReplaceAll(text, secret, redact.Hidden)
		// A text may have been cut within it.
		for n := min(len(secret), len(text)); n >= leastSecret; n-- {
			if before, cut := strings.CutSuffix(text, secret[:n]); cut {
				text = before + redact.Hidden
			}
		}
	}
	return text
}

// hideIn is hide for an error, and its status if it is one.
func (s *sent) hideIn(err error) error {
	st, ok := status.FromError(err)
	if !ok {
		if text := s.hide(err.Error()); text != err.Error() {
			return errors.New(text)
		}
		return err
	}
	if text := s.hide(st.Message()); text != st.Message() {
		return status.Error(st.Code(), text)
	}
	return err
}

// remember notes what call credentials give from now on.
func (s *sent) remember(all []credentials.PerRPCCredentials) {
	s.most = tokensKept * len(all)
	for i, creds := range all {
		all[i] = remembered{creds, s}
	}
}

type remembered struct {
	credentials.PerRPCCredentials
	sent *sent
}

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (r remembered) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	pairs, err := r.PerRPCCredentials.GetRequestMetadata(ctx, uri...)
	r.sent.mu.Lock()
	defer r.sent.mu.Unlock()
	for value := range maps.Values(pairs) {
		for _, token := range secretsOf(value) {
			r.sent.tokens = slices.DeleteFunc(r.sent.tokens, func(known string) bool { return known == token })
			r.sent.tokens = append(r.sent.tokens, token)
		}
	}
	r.sent.tokens = r.sent.tokens[max(0, len(r.sent.tokens)-r.sent.most):]
	return pairs, err
}

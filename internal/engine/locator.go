package engine

import (
	"errors"
	"fmt"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Redirect is the value of a notice whose payload is no resource but says where the
// resource is (xRFC TP1, "Redirects").
type Redirect struct{ To xdstp.Locator }

// Why a locator cannot be followed.
var (
	errScheme    = errors.New("only the scheme xdstp is followed")
	errGlob      = errors.New("it stands for a collection and not for one resource")
	errOtherType = errors.New("its type segment is another type")
)

// NewRedirect reads the payload of a redirect of a type. An error says why the locator
// cannot be one of a resource of the type; its alternatives are not looked at.
func NewRedirect(k resource.AnyType, raw []byte) (*Redirect, error) {
	l, err := xdstp.DecodeLocator(raw)
	if err != nil {
		return nil, fmt.Errorf("the redirect does not parse: %w", err)
	}
	segment := xdstp.TypeSegment(k.TypeURL())
	if _, ok := l.Entry(); ok {
		segment = xdstp.TypeSegment(xdstp.ListCollectionURL(k.TypeURL()))
	}
	switch {
	// XDSTP-6: http and file are read, and not followed.
	case l.Scheme != xdstp.SchemeXDSTP:
		err = errScheme
	case l.Name.Type != segment:
		err = errOtherType
	case l.Name.IsGlob():
		err = errGlob
	default:
		return &Redirect{l}, nil
	}
	return nil, fmt.Errorf("the redirect leads to %q: %w", l, err)
}

// redirectOf decodes an item that holds a locator.
func redirectOf(k resource.AnyType, raw, old []byte) (value any, same bool, err error) {
	r, err := NewRedirect(k, raw)
	if err != nil {
		return nil, false, err
	}
	if old != nil && len(old) == len(raw) {
		was, err := xdstp.DecodeLocator(old)
		same = err == nil && was.Equal(r.To)
	}
	return r, same, nil
}

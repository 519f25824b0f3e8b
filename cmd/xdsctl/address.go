package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// endpointSchemes are those of gRPC's targets whose endpoint is HOST:PORT, or several, with commas.
var endpointSchemes = []string{"dns", "passthrough", "ipv4", "ipv6"}

// targetFault says why gRPC cannot have a server at a target; nil if it can. What a name leads to is found
// out later.
func targetFault(target string) error {
	scheme, endpoint, ok := strings.Cut(target, ":")
	switch {
	case ok && (scheme == "unix" || scheme == "unix-abstract"):
		if strings.TrimPrefix(endpoint, "//") == "" {
			return addressError(target, errors.New("no path of a socket"))
		}
		return nil
	case ok && slices.Contains(endpointSchemes, scheme) && !isPort(endpoint):
		if rest, ok := strings.CutPrefix(endpoint, "//"); ok {
			_, endpoint, _ = strings.Cut(rest, "/")
		}
	case strings.Contains(target, "://"):
		return addressError(target, fmt.Errorf("%q is no scheme of gRPC", scheme))
	default:
		endpoint = target
	}
	for one := range strings.SplitSeq(endpoint, ",") {
		if err := hostFault(one); err != nil {
			return addressError(target, err)
		}
	}
	return nil
}

// hostFault says why a text is not HOST:PORT, or a HOST to which gRPC adds its port.
func hostFault(text string) error {
	bare := text
	if rest, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(rest, "]") {
		bare = strings.TrimSuffix(rest, "]")
	}
	switch {
	case text == "":
		return errors.New("no host")
	case strings.ContainsAny(text, " \t\r\n"):
		return errors.New("a space in it")
	case net.ParseIP(bare) != nil, !strings.Contains(text, ":"):
		return nil
	}
	return portFault(text, 1)
}

// portFault says why a text is not HOST:PORT, with a port of at least lowest.
func portFault(text string, lowest int) error {
	_, port, err := net.SplitHostPort(text)
	if fault, ok := errors.AsType[*net.AddrError](err); ok {
		return errors.New(fault.Err)
	}
	n, err := net.LookupPort("tcp", port)
	if port == "" || err != nil || n < lowest {
		return fmt.Errorf("%q is no port", told(port))
	}
	return nil
}

func isPort(text string) bool {
	_, err := net.LookupPort("tcp", text)
	return text != "" && err == nil
}

func addressError(text string, reason error) error {
	return fmt.Errorf("%q is no address: %w; want HOST:PORT", told(text), reason)
}

// told is a target without what may be secret.
func told(target string) string { return bootstrap.ManagementServer{URI: target}.Name() }

// listenFault is an address of --listen that none can be; nil for others.
func listenFault(text string) error {
	if err := portFault(text, 0); err != nil {
		return fmt.Errorf("--listen: %w", addressError(text, err))
	}
	return nil
}

// processFault says why a text is no address of a process; nil if it is one.
func processFault(text string) error {
	if isURL(text) {
		return urlFault(text)
	}
	return targetFault(strings.TrimPrefix(text, "csds:"))
}

// urlFault says why a text that begins as a URL is none; nil if it is one.
func urlFault(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Port() == "" && strings.HasSuffix(u.Host, ":") {
		return errors.New("not a URL of a host") // without the text, which may have a password
	}
	if u.Port() != "" {
		return portFault(u.Host, 1)
	}
	return nil
}

package bootstrap

import (
	"fmt"
	"net/url"
	"strings"
)

// ClientListenerName returns the name of the Listener that a gRPC client watches when it dials
// "xds://authority/target" or "xds:target": the authority's template, or the default one if
// authority is "", with every %s replaced (gRFC A47). The error wraps [ErrUnknownAuthority].
func (c *Config) ClientListenerName(authority, target string) (string, error) {
	// BOOT-7: the default template is the target itself.
	if authority == "" {
		return fill(orDefault(c.ClientDefaultListenerTemplate, defaultTemplate), target), nil
	}
	a, ok := c.Authorities[authority]
	if !ok {
		return "", fmt.Errorf("%q: %w", authority, ErrUnknownAuthority)
	}
	// BOOT-6: the default template of an authority has its prefix.
	return fill(orDefault(a.ClientListenerTemplate, authorityTemplate(authority)), target), nil
}

// ServerListenerName returns the name of the Listener that a gRPC server watches when it listens
// on an address such as "0.0.0.0:443": the template with every %s replaced (gRFC A36, A47). It may
// have context parameters such as "xds.resource.listening_address", which a watch takes with
// client.Received. The error is [ErrNoTemplate].
func (c *Config) ServerListenerName(address string) (string, error) {
	if c.ServerListenerTemplate == "" {
		return "", ErrNoTemplate
	}
	return fill(c.ServerListenerTemplate, address), nil
}

const defaultTemplate = "%s"

// authorityTemplate is the listener template of an authority that names none.
func authorityTemplate(name string) string {
	return authorityPrefix(url.PathEscape(name)) + "envoy.config.listener.v3.Listener/%s"
}

// fill replaces every %s. In an xdstp name the text is percent-encoded, its slashes kept.
func fill(template, text string) string {
	// BOOT-7: the text is escaped in an xdstp name.
	if strings.HasPrefix(template, "xdstp:") {
		segments := strings.Split(text, "/")
		for i, s := range segments {
			segments[i] = url.PathEscape(s)
		}
		text = strings.Join(segments, "/")
	}
	return strings.ReplaceAll(template, "%s", text)
}

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

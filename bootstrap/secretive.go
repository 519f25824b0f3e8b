package bootstrap

import (
	"regexp"
	"slices"
	"strings"
)

// H-3: a secret does not stand in the place of a name.

// targetFault says what is wrong with a target of gRPC.
func targetFault(target string) string {
	scheme, rest, ok := strings.Cut(target, ":")
	scheme = strings.ToLower(scheme)
	switch {
	case strings.HasPrefix(scheme, "unix"), scheme == "vsock":
		return ""
	case !ok || !strings.HasPrefix(rest, "//") && !slices.Contains(schemes, scheme) && !slices.Contains(foreignSchemes, scheme):
		rest = target
	}
	for part := range strings.SplitSeq(rest, "/") {
		if at := strings.LastIndexByte(part, '@'); at >= 0 && strings.Contains(part[:at], ":") {
			return "has a password, which gRPC would not use"
		}
	}
	return ""
}

// content is how a certificate, a key or a token begins.
var content = regexp.MustCompile(`^\s*-----BEGIN|[\r\n\x00]|^ey[\w-]+\.[\w-]+\.[\w-]*$`)

// pathFault says what is wrong with the path of a file of a credential.
func pathFault(path string) string {
	if content.MatchString(path) {
		return "want the path of a file, not its content"
	}
	return ""
}

// dialled is a required target of gRPC.
func (x field) dialled() string {
	target := x.required()
	if reason := targetFault(target); reason != "" {
		x.hidden().fault("%s", reason)
	}
	x.noticeTarget()
	return target
}

// filePath is the path of a file of a credential; "" if absent.
func (x field) filePath() string {
	path := x.str()
	if reason := pathFault(path); reason != "" {
		x.hidden().fault("%s", reason)
	}
	return path
}

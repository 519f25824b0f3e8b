package redact

import "strings"

// Hidden stands in place of what is not told.
const Hidden = "[redacted]"

// Target is a target of gRPC, or another URI, without what may be secret: the values of its query, its
// fragment, and what stands before an "@" as user info does. What it returns it leaves as it is.
func Target(uri string) string {
	if !strings.ContainsAny(uri, "#?@") {
		return uri // which most are, and it is told with each event
	}
	uri, fragment, hasFragment := strings.Cut(uri, "#")
	uri, query, hasQuery := strings.Cut(uri, "?")
	if !strings.HasPrefix(uri, "unix") { // whose paths and abstract names may have an "@"
		parts := strings.Split(uri, "/")
		for i, part := range parts {
			if at := strings.LastIndexByte(part, '@'); at > 0 {
				parts[i] = Hidden + part[at:]
			}
		}
		uri = strings.Join(parts, "/")
	}
	if hasQuery {
		pairs := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
		for i, pair := range pairs {
			if key, _, ok := strings.Cut(pair, "="); ok {
				pairs[i] = key + "=" + Hidden
			} else {
				pairs[i] = Hidden
			}
		}
		uri += "?" + strings.Join(pairs, "&")
	}
	if hasFragment && fragment != "" {
		uri += "#" + Hidden
	}
	return uri
}

// InTarget takes out of a text what [Target] takes out of a URI: where the text quotes the URI, its query
// or its user info.
func InTarget(text, uri string) string {
	shown := Target(uri)
	if shown == uri {
		return text
	}
	text = strings.ReplaceAll(text, uri, shown)
	rest, fragment, _ := strings.Cut(uri, "#")
	rest, query, _ := strings.Cut(rest, "?")
	for i, secret := range []string{query, fragment} {
		if before := "?#"[i : i+1]; secret != "" {
			text = strings.ReplaceAll(text, before+secret, before+Hidden)
		}
	}
	for part := range strings.SplitSeq(rest, "/") {
		if at := strings.LastIndexByte(part, '@'); at > 0 && !strings.HasPrefix(uri, "unix") {
			text = strings.ReplaceAll(text, part[:at+1], Hidden+"@")
		}
	}
	return text
}

package wire

import "google.golang.org/protobuf/encoding/protowire"

// Status is a google.rpc.Status: the error_detail of a NACK.
type Status struct {
	Code    int32
	Message string
}

// Field numbers of the two requests.
const (
	sotwVersion = 1
	sotwNode    = 2
	sotwTypeURL = 4
	sotwNonce   = 5
	sotwError   = 6
	sotwLocator = 7

	deltaNode        = 1
	deltaTypeURL     = 2
	deltaUnsubscribe = 4
	deltaInitial     = 5
	deltaNonce       = 6
	deltaError       = 7

	deltaSubscribeLocator   = 8
	deltaUnsubscribeLocator = 9

	// NamesField is resource_names of a DiscoveryRequest and resource_names_subscribe of
	// a DeltaDiscoveryRequest, which have the same number.
	NamesField = 3
)

// AppendSotW appends the fields of a DiscoveryRequest but its resource names. Empty
// fields are left out; node is an encoded Node.
func AppendSotW(b []byte, typeURL, version, nonce string, node []byte, detail *Status) []byte {
	b = appendString(b, sotwVersion, version)
	b = appendBytes(b, sotwNode, node)
	b = appendString(b, sotwTypeURL, typeURL)
	b = appendString(b, sotwNonce, nonce)
	return appendStatus(b, sotwError, detail)
}

// AppendDelta appends the fields of a DeltaDiscoveryRequest but its names and versions.
func AppendDelta(b []byte, typeURL, nonce string, node []byte, detail *Status) []byte {
	b = appendBytes(b, deltaNode, node)
	b = appendString(b, deltaTypeURL, typeURL)
	b = appendString(b, deltaNonce, nonce)
	return appendStatus(b, deltaError, detail)
}

// AppendTypeURL appends the type URL of a request.
func AppendTypeURL(b []byte, url string, delta bool) []byte {
	return appendString(b, typeURLField(delta), url)
}

// CutTypeURL finds the type URL in the encoding of a request, or of its beginning: what
// stands before that field, its value, and what follows it. Without one everything stands
// before it.
func CutTypeURL(b []byte, delta bool) (before []byte, url string, after []byte) {
	for at := 0; at < len(b); {
		num, typ, size := protowire.ConsumeField(b[at:])
		if size < 0 {
			break
		}
		if num == typeURLField(delta) && typ == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(b[at:])
			value, _ := protowire.ConsumeBytes(b[at+tag:])
			return b[:at], string(value), b[at+size:]
		}
		at += size
	}
	return b, "", nil
}

func typeURLField(delta bool) protowire.Number {
	if delta {
		return deltaTypeURL
	}
	return sotwTypeURL
}

// AppendName appends one name to resource_names of a DiscoveryRequest, or with parameters
// to resource_locators. An empty name is written too.
func AppendName(b []byte, name string, p *Params) []byte {
	return p.appendName(b, name, NamesField, sotwLocator)
}

// AppendSubscribe appends one name to resource_names_subscribe of a DeltaDiscoveryRequest,
// or with parameters to resource_locators_subscribe.
func AppendSubscribe(b []byte, name string, p *Params) []byte {
	return p.appendName(b, name, NamesField, deltaSubscribeLocator)
}

// AppendUnsubscribe appends one name to resource_names_unsubscribe, or with parameters to
// resource_locators_unsubscribe.
func AppendUnsubscribe(b []byte, name string, p *Params) []byte {
	return p.appendName(b, name, deltaUnsubscribe, deltaUnsubscribeLocator)
}

// CutName splits off the first of the names that [AppendName] wrote, of which there is one
// at least.
func CutName(b []byte) (name, rest []byte) {
	size, n := protowire.ConsumeVarint(b[1:])
	value, rest := b[1+n:][:size], b[1+n:][size:]
	if b[0]>>3 == sotwLocator {
		value, _ = protowire.ConsumeBytes(value[1:])
	}
	return value, rest
}

// SizeName is how many bytes [AppendName] and its like append.
func SizeName(name string, p *Params) int {
	size := protowire.SizeBytes(len(name))
	if p != nil {
		size = protowire.SizeBytes(1 + size + len(p.encoded))
	}
	return 1 + size
}

// AppendInitialVersion appends one entry of initial_resource_versions.
func AppendInitialVersion(b []byte, name, version string) []byte {
	size := 2 + protowire.SizeBytes(len(name)) + protowire.SizeBytes(len(version))
	b = protowire.AppendTag(b, deltaInitial, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = protowire.AppendTag(b, 1, protowire.BytesType)
	b = protowire.AppendString(b, name)
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	return protowire.AppendString(b, version)
}

// SizeInitialVersion is how many bytes [AppendInitialVersion] appends.
func SizeInitialVersion(name, version string) int {
	return 1 + protowire.SizeBytes(2+protowire.SizeBytes(len(name))+protowire.SizeBytes(len(version)))
}

func appendString(b []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendString(b, s)
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendBytes(b, v)
}

func appendStatus(b []byte, num protowire.Number, s *Status) []byte {
	if s == nil {
		return b
	}
	var m []byte
	if s.Code != 0 {
		m = protowire.AppendTag(m, 1, protowire.VarintType)
		m = protowire.AppendVarint(m, uint64(s.Code))
	}
	m = appendString(m, 2, s.Message)
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendBytes(b, m)
}

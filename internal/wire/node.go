package wire

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// nodeParams is dynamic_parameters of a Node.
const nodeParams = 12

// SetNodeParams makes the dynamic parameters of a type in an encoded Node these, or without
// values none. It modifies nothing, and says whether they were others before.
func SetNodeParams(node []byte, typeURL string, values map[string]string) (out []byte, changed bool) {
	var entry, old []byte
	if len(values) > 0 {
		params := appendMap(nil, 1, values)
		entry = protowire.AppendTag(entry, nodeParams, protowire.BytesType)
		entry = protowire.AppendVarint(entry, uint64(2+protowire.SizeBytes(len(typeURL))+protowire.SizeBytes(len(params))))
		entry = protowire.AppendTag(entry, 1, protowire.BytesType)
		entry = protowire.AppendString(entry, typeURL)
		entry = protowire.AppendTag(entry, 2, protowire.BytesType)
		entry = protowire.AppendBytes(entry, params)
	}
	for rest := node; len(rest) > 0; {
		num, typ, size := protowire.ConsumeField(rest)
		if size < 0 {
			return node, false
		}
		one := rest[:size]
		rest = rest[size:]
		if num == nodeParams && typ == protowire.BytesType && keyOf(one) == typeURL {
			old = one
			continue
		}
		out = append(out, one...)
	}
	return append(out, entry...), !bytes.Equal(old, entry)
}

// keyOf is the key of an entry of a map.
func keyOf(entry []byte) string {
	_, _, tag := protowire.ConsumeTag(entry)
	value, _ := protowire.ConsumeBytes(entry[tag:])
	key, _, _ := StringField(value, 1)
	return string(key)
}

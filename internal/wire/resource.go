package wire

import "google.golang.org/protobuf/encoding/protowire"

// LocatorURL is the type URL of what stands in a resource's place and says where it is.
const LocatorURL = "type.googleapis.com/xds.core.v3.ResourceLocator"

// AppendResource appends an encoded envoy.service.discovery.v3.Resource, without a time to live.
func AppendResource(b []byte, r *Resource) []byte {
	b = appendBytes(b, 1, r.Version)
	if r.HasBody {
		size := sizeBytes(1, r.TypeURL) + sizeBytes(2, r.Payload)
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(size))
		b = appendBytes(b, 1, r.TypeURL)
		b = appendBytes(b, 2, r.Payload)
	}
	b = appendBytes(b, 3, r.Name)
	a := r.Attributes
	if a == nil {
		return b
	}
	for _, alias := range a.Aliases {
		b = appendBytes(b, 4, alias)
	}
	if a.DoNotCache {
		b = appendBytes(b, 7, []byte{1 << 3, 1})
	}
	return appendBytes(b, 9, a.Metadata)
}

// ScanResource reads an encoded Resource, of whose bytes the result is parts.
func ScanResource(b []byte) Resource {
	return (&Response{Size: len(b)}).scanWrapper(b)
}

func sizeBytes(num protowire.Number, v []byte) int {
	if len(v) == 0 {
		return 0
	}
	return protowire.SizeTag(num) + protowire.SizeBytes(len(v))
}

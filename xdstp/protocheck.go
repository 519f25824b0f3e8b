package xdstp

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// checkType refuses a type of a message that could not be a segment of the text; field is
// the path of the message.
func (n Name) checkType(field string) error {
	field += ".resource_type"
	if n.Type == "" {
		return fieldFault(field, PartType, "is empty")
	}
	if i := strings.IndexAny(n.Type, "/?#"); i >= 0 {
		return fieldFault(field, PartType, fmt.Sprintf("%q holds %q", n.Type, n.Type[i]))
	}
	return nil
}

const notUTF8 = "is not UTF-8"

// checkUTF8 refuses a part that a message cannot carry; field is the path of the message,
// context the field with the parameters.
func (n Name) checkUTF8(field, context string) error {
	for _, f := range []struct {
		field string
		part  Part
		text  string
	}{
		{"authority", PartAuthority, n.Authority},
		{"resource_type", PartType, n.Type},
		{"id", PartID, n.ID},
	} {
		if !utf8.ValidString(f.text) {
			return fieldFault(field+"."+f.field, f.part, notUTF8)
		}
	}
	for _, p := range n.Params {
		if !utf8.ValidString(p.Key) || !utf8.ValidString(p.Value) {
			path := fmt.Sprintf("%s.%s.params[%q]", field, context, p.Key)
			return fieldFault(path, PartParams, notUTF8)
		}
	}
	return nil
}

// checkUTF8 refuses a part that a message cannot carry, here and in the alternatives.
func (l Locator) checkUTF8(field string) error {
	if err := l.Name.checkUTF8(field, "exact_context"); err != nil {
		return err
	}
	for i, d := range l.Directives {
		at := fmt.Sprintf("%s.directives[%d]", field, i)
		if d.Alt != nil {
			if err := d.Alt.checkUTF8(at + ".alt"); err != nil {
				return err
			}
		} else if !utf8.ValidString(d.Entry) {
			return fieldFault(at+".entry", PartDirectives, notUTF8)
		}
	}
	return nil
}

package script

import (
	"maps"
	"slices"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/authority"
)

// Values are what words KEY=VALUE stand for.
func Values(words []string) map[string]string {
	values := map[string]string{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		values[key] = value
	}
	return values
}

// Params are the dynamic parameters of an authority's names, or of [authority.OldLabel] those
// of names that have none.
func (s *Script) Params(label string) map[string]string {
	var words []string
	for _, word := range s.Headers["params"] {
		of, param, ok := strings.Cut(word, ":")
		if !ok {
			of, param = authority.OldLabel, word
		}
		if of == label {
			words = append(words, param)
		}
	}
	return Values(words)
}

// cutConstraints takes {...} from the end of a word.
func cutConstraints(word string) (rest string, c *discoveryv3.DynamicParameterConstraints, ok bool) {
	rest, list, ok := strings.Cut(strings.TrimSuffix(word, "}"), "{")
	if !ok {
		return word, nil, false
	}
	if list != "" {
		c = constraints(list)
	}
	return rest, c, true
}

// constraints are what stands in the braces of an item.
func constraints(list string) *discoveryv3.DynamicParameterConstraints {
	all := &discoveryv3.DynamicParameterConstraints_ConstraintList{}
	for text := range strings.SplitSeq(list, ",") {
		all.Constraints = append(all.Constraints, constraint(text))
	}
	return &discoveryv3.DynamicParameterConstraints{
		Type: &discoveryv3.DynamicParameterConstraints_AndConstraints{AndConstraints: all},
	}
}

func constraint(text string) *discoveryv3.DynamicParameterConstraints {
	if text, not := strings.CutPrefix(text, "!"); not {
		return &discoveryv3.DynamicParameterConstraints{
			Type: &discoveryv3.DynamicParameterConstraints_NotConstraints{NotConstraints: constraint(text)},
		}
	}
	key, value, has := strings.Cut(text, "=")
	one := &discoveryv3.DynamicParameterConstraints_SingleConstraint{Key: key}
	if has {
		one.ConstraintType = &discoveryv3.DynamicParameterConstraints_SingleConstraint_Value{Value: value}
	} else {
		one.ConstraintType = &discoveryv3.DynamicParameterConstraints_SingleConstraint_Exists_{
			Exists: &discoveryv3.DynamicParameterConstraints_SingleConstraint_Exists{},
		}
	}
	return &discoveryv3.DynamicParameterConstraints{
		Type: &discoveryv3.DynamicParameterConstraints_Constraint{Constraint: one},
	}
}

// asked writes names, and then those that have parameters.
func asked(names []string, locators []*discoveryv3.ResourceLocator) string {
	words := slices.Clone(names)
	for _, l := range locators {
		words = append(words, l.Name+shown(l.DynamicParameters))
	}
	return strings.Join(words, " ")
}

// shown writes parameters as {key=value,key=value}.
func shown(params map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(params)) {
		words = append(words, key+"="+params[key])
	}
	return "{" + strings.Join(words, ",") + "}"
}

package machine

import "slices"

// removeFrom takes a value out of a list, which is changed.
func removeFrom[T comparable](ws []T, w T) []T {
	if i := slices.Index(ws, w); i >= 0 {
		return slices.Delete(ws, i, i+1)
	}
	return ws
}

// except is a list without some of it. The list is not changed, and may be the result.
func except[T any](all []T, which func(T) bool) []T {
	switch first := slices.IndexFunc(all, which); {
	case first < 0:
		return all
	case len(all) == 1: // as most lists of watches
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), which)
}

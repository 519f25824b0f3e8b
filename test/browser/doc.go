// Package browser tests the pages of package statuspage in a real browser: Debian's Chromium, without
// a window. It is a module of its own, so that the library does not require what drives a browser.
package browser

package policy

import "testing"

// TestVisibleWritesOutWhatCannotBeSeen has a character of each kind that is
// not seen for what it is.
func TestVisibleWritesOutWhatCannotBeSeen(t *testing.T) {
	for in, want := range map[string]string{
		"ls -l\n\tx\u00e9\u4e2d": "ls -l\n\tx\u00e9\u4e2d",
		"\r\x1b\x7f\xff":         `\x0d\x1b\x7f\xff`,
		"\u0085\u00a0\u00ad":     `\u{85}\u{a0}\u{ad}`,
		"\u034f\u17b4\u2065":     `\u{34f}\u{17b4}\u{2065}`,
		"\u115f\u1160\u3164":     `\u{115f}\u{1160}\u{3164}`,
		"\uffa0\u2800\ufff0":     `\u{ffa0}\u{2800}\u{fff0}`,
		"\u200b\u202e\u2028":     `\u{200b}\u{202e}\u{2028}`,
		"\ufe0f\U000e0041\ufeff": `\u{fe0f}\u{e0041}\u{feff}`,
	} {
		if got := Visible(in); got != want {
			t.Errorf("%+q: %s, want %s", in, got, want)
		}
	}
}

package policy

import "testing"

func TestT23HostsByLabel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, host string
		want          bool
	}{
		{"example.com", "example.com", true},
		{"example.com", "www.example.com", true},
		{"example.com", "a.b.example.com", true},
		{"example.com", "EXAMPLE.COM", true},
		{"example.com", "example.com.", true},
		{"example.com", "https://example.com/x", true},
		{"example.com", "https://user:pw@www.example.com:8443/x?y#z", true},
		{"example.com", "example.com:443", true},
		{"Example.com", "example.com", true},
		{"*.example.com", "a.example.com", true},
		{"*.example.com", "example.com", false},
		{"example.com", "example.com.evil.org", false},
		{"example.com", "evilexample.com", false},
		{"example.com", "example.org", false},
		{"docs.python.org", "docs.python.org.evil.com", false},
		{"docs.python.org", "https://evil.com#docs.python.org", false},
		{"docs.python.org", "https://evil.com?docs.python.org", false},
		{"docs.python.org", "https://docs.python.org@evil.com/", false},
		{"docs.python.org", "https://evil.com/docs.python.org", false},
		{"docs.python.org", `https://evil.com\@docs.python.org/`, false},
		{"docs.python.org", "python.org", false},
		{"good.com", "a\x00.good.com", false},
		{"good.com", "a\r\n.good.com", false},
		{"good.com", "a b.good.com", false},
		{"good.com", ".good.com", false},
		{"good.com", "..good.com", false},
		{"good.com", "evil.com%2egood.com", false},
		{"bücher.de", "xn--bcher-kva.de", true},
		{"xn--bcher-kva.de", "BÜCHER.de", true},
		{"apple.com", "аpple.com", false},
		{"com", "example.com", true},
		{"", "example.com", false},
		{"*", "example.com", false},
		{"*.", "example.com", false},
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "2130706433", true},
		{"127.0.0.1", "0x7f000001", true},
		{"127.0.0.1", "0x7f.0.0.1", true},
		{"127.0.0.1", "0177.0.0.1", true},
		{"127.0.0.1", "127.1", true},
		{"127.0.0.1", "http://[::ffff:127.0.0.1]/", true},
		{"127.0.0.1", "http://[::ffff:7f00:1]:80/", true},
		{"0.0.1", "127.0.0.1", false},
		{"1", "127.0.0.1", false},
		{"::1", "http://[::1]/", true},
		{"::1", "[0:0:0:0:0:0:0:1]", true},
		{"127.0.0.1", "256.0.0.1", false},
		{"127.0.0.1", "127.0.0.1.evil.com", false},
		{"169.254.169.254", "0xa9fea9fe", true},
		{"169.254.169.254", "[fe80::1%25eth0]", false},
	} {
		if got := MatchDomain(c.pattern, c.host); got != c.want {
			t.Errorf("MatchDomain(%q, %q) = %v", c.pattern, c.host, got)
		}
	}
}

package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// ParseHost gives the canonical name of the host of an address (with a
// scheme) or of a bare host, perhaps with a port: lower case, without a
// trailing dot, international names in their ASCII form, numeric addresses in
// the one usual form. What couldn't be a host, or could be taken for
// different ones, is an error.
func ParseHost(s string) (string, error) {
	host := s
	if strings.Contains(s, "://") {
		u, err := url.Parse(s)
		if err != nil {
			return "", fmt.Errorf("address %q can't be read: %w", s, err)
		}
		if strings.ContainsAny(s, "\\\t\r\n ") {
			return "", fmt.Errorf("address %q holds characters that programs read differently", s)
		}
		host = u.Hostname()
	} else {
		if strings.ContainsAny(s, "/@?#\\%") {
			return "", fmt.Errorf("%q is no host", s)
		}
		host = bareHost(s)
	}
	return canonicalHost(host)
}

func bareHost(s string) string {
	if strings.HasPrefix(s, "[") {
		if i := strings.IndexByte(s, ']'); i > 0 {
			return s[1:i]
		}
		return s
	}
	if i := strings.IndexByte(s, ':'); i >= 0 && strings.Count(s, ":") == 1 {
		return s[:i]
	}
	return s
}

var errNoHost = errors.New("no host")

func canonicalHost(host string) (string, error) {
	if host == "" {
		return "", errNoHost
	}
	if strings.Contains(host, ":") {
		a, err := netip.ParseAddr(host)
		if err != nil || a.Zone() != "" {
			return "", fmt.Errorf("%q is no host", host)
		}
		return a.Unmap().String(), nil
	}
	for _, r := range host {
		if r >= 0x80 && !unicode.In(r, unicode.L, unicode.M, unicode.Nd) && !strings.ContainsRune("\u00b7\u0375\u05f3\u05f4\u30fb\u3002\uff0e\uff61", r) {
			return "", fmt.Errorf("%q is no host: U+%04X may be taken for something else", host, r)
		}
	}
	host = strings.TrimSuffix(host, ".")
	ascii, err := idna.Lookup.ToASCII(host)
	if err == nil {
		_, err = idna.Lookup.ToASCII(ascii)
	}
	if err != nil {
		return "", fmt.Errorf("%q is no host: %w", host, err)
	}
	ascii = strings.TrimSuffix(strings.ToLower(ascii), ".")
	if err := checkLabels(ascii); err != nil {
		return "", err
	}
	if looksNumeric(ascii) {
		a, ok := numericHost(ascii)
		if !ok {
			return "", fmt.Errorf("%q is no host: it looks like a numeric address, and isn't one", host)
		}
		return a, nil
	}
	return ascii, nil
}

func checkLabels(host string) error {
	if host == "" || len(host) > 253 {
		return fmt.Errorf("%q is no host", host)
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 {
			return fmt.Errorf("%q is no host: a part between dots is empty or too long", host)
		}
		for i := range len(label) {
			c := label[i]
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return fmt.Errorf("%q is no host: it holds %q", host, c)
			}
		}
	}
	return nil
}

// looksNumeric reports whether programs may read a name as an IPv4 address:
// its last label is a number.
func looksNumeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digitsOnly(last) {
		return true
	}
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return false
}

// numericHost reads an IPv4 address as inet_aton does: one to four numbers,
// decimal, octal or hexadecimal.
func numericHost(host string) (string, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return "", false
	}
	var ip uint64
	for i, p := range parts {
		if p == "0x" {
			p = "0"
		}
		n, err := strconv.ParseUint(p, 0, 64)
		if err != nil || strings.ContainsAny(p, "_ob") && !strings.HasPrefix(p, "0x") {
			return "", false
		}
		if i < len(parts)-1 {
			if n > 255 {
				return "", false
			}
			ip |= n << (8 * (3 - i))
			continue
		}
		if n >= 1<<(8*(4-i)) {
			return "", false
		}
		ip |= n
	}
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)}).String(), true
}

// MatchDomain reports whether a host is the domain of a rule, or in it.
// Labels are compared from the right, never as text: example.com matches
// www.example.com, not example.com.evil.org. A pattern of *.example.com
// matches only what is in it. Numeric addresses match only themselves. What
// isn't a host, or isn't a domain, matches nothing.
func MatchDomain(pattern, host string) bool {
	within := false
	if rest, ok := strings.CutPrefix(strings.TrimSpace(pattern), "*."); ok {
		pattern, within = rest, true
	}
	p, err := ParseHost(strings.TrimSpace(pattern))
	if err != nil {
		return false
	}
	h, err := ParseHost(host)
	if err != nil {
		return false
	}
	if _, err := netip.ParseAddr(h); err == nil {
		return !within && h == p
	}
	if h == p {
		return !within
	}
	if _, err := netip.ParseAddr(p); err == nil {
		return false
	}
	return strings.HasSuffix(h, "."+p)
}

// CheckDomain says what is wrong with a pattern of hosts: host, or *.host for
// what is beneath it. The error of one that is empty or no host tells so.
func CheckDomain(pattern string) error {
	_, err := ParseHost(strings.TrimPrefix(strings.TrimSpace(pattern), "*."))
	return err
}

package tools

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// maxURLBytes is the longest URL that web_fetch takes.
const maxURLBytes = 8192

// refusedError is an address that web_fetch doesn't go to.
type refusedError struct{ where, why string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s is refused: %s. Only public web addresses can be fetched; the user can allow a host in the setting tools.webFetch.allowedPrivateHosts", e.where, e.why)
}

// parseWebURL reads a URL strictly. The host of the result is the string that
// will be dialled: lower case, ASCII, without a trailing dot, numeric IPv4
// forms (0x7f.1, 2130706433) written out.
func parseWebURL(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	if len(raw) > maxURLBytes {
		return nil, fmt.Errorf("the URL is longer than %d bytes", maxURLBytes)
	}
	if i := strings.IndexFunc(raw, unfit); i >= 0 {
		return nil, errors.New("the URL holds a blank, control or invisible character: percent-encode or remove it")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the URL can't be read: %w", errors.Unwrap(err))
	}
	return u, checkWebURL(u)
}

// unfit reports characters that have no place in a URL: blanks, controls
// (NUL, CR, LF), and those that change how text looks (bidi, zero width).
func unfit(r rune) bool {
	return r == unicode.ReplacementChar || unicode.IsSpace(r) || unicode.In(r, unicode.C)
}

// checkWebURL brings u's host into the form described at parseWebURL, or says
// what is wrong with u.
func checkWebURL(u *url.URL) error {
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the URL must begin with https:// or http://")
	case u.User != nil:
		return errors.New("the URL holds a user or password (something@ before the host): such URLs are not fetched")
	case u.Opaque != "" || u.Hostname() == "":
		return errors.New("the URL has no host")
	}
	host, err := normalHost(u.Hostname())
	if err != nil {
		return fmt.Errorf("the URL's host %q %w", u.Hostname(), err)
	}
	port := u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return fmt.Errorf("the URL's port %q is none", port)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	u.Host = host
	if port != "" {
		u.Host += ":" + port
	}
	return nil
}

// normalHost returns the form of a host that is compared and dialled.
func normalHost(host string) (string, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return "", errors.New("has a zone")
		}
		return ip.String(), nil
	}
	if strings.ContainsAny(host, ":%") {
		return "", errors.New("is no valid address")
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil && strings.IndexFunc(host, func(r rune) bool { return r >= 0x80 }) >= 0 {
		return "", errors.New("is no valid international name")
	}
	if err != nil { // idna refuses some names that are in use, such as a_b.example
		ascii = host
	}
	ascii = strings.TrimSuffix(strings.ToLower(ascii), ".")
	if len(ascii) > 253 {
		return "", errors.New("is too long")
	}
	labels := strings.Split(ascii, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.IndexFunc(label, notLDH) >= 0 {
			return "", errors.New("is no valid host name")
		}
	}
	if last := labels[len(labels)-1]; isNumber(last) {
		return numericIPv4(labels)
	}
	return ascii, nil
}

// notLDH reports characters other than letters, digits, hyphen and underscore.
func notLDH(r rune) bool {
	return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
}

// isNumber reports whether browsers and C libraries read a label as a number.
func isNumber(s string) bool {
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// numericIPv4 reads the historic forms of IPv4 addresses: one to four numbers
// in decimal, octal (leading 0) or hexadecimal (0x), the last one filling what
// is left.
func numericIPv4(parts []string) (string, error) {
	bad := errors.New("is no valid address")
	if len(parts) > 4 {
		return "", bad
	}
	var sum uint64
	for i, part := range parts {
		n, err := number(part)
		if err != nil {
			return "", bad
		}
		if last := i == len(parts)-1; !last {
			if n > 255 {
				return "", bad
			}
			sum |= n << (8 * (3 - i))
		} else if n >= 1<<(8*(4-i)) {
			return "", bad
		} else {
			sum |= n
		}
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}).String(), nil
}

func number(s string) (uint64, error) {
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		if hex == "" {
			return 0, nil
		}
		return strconv.ParseUint(hex, 16, 64)
	}
	if len(s) > 1 && s[0] == '0' {
		return strconv.ParseUint(s[1:], 8, 64)
	}
	return strconv.ParseUint(s, 10, 64)
}

// specialNets are the networks inside the public ranges that are not the
// public Internet (IANA special-purpose registries), and cloud services that
// give credentials away.
func specialNets() []netip.Prefix {
	var nets []netip.Prefix
	for _, s := range [...]string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32", // Azure's host agent
		"2001::/23",        // protocol assignments, Teredo and ORCHID among them
		"2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		nets = append(nets, netip.MustParsePrefix(s))
	}
	return nets
}

// privateReason says why an address is not on the public Internet; "" if it
// is. Addresses that carry an IPv4 address inside (mapped, NAT64) are judged by
// that.
func privateReason(ip netip.Addr) string {
	ip = ip.WithZone("").Unmap()
	if nat64 := netip.MustParsePrefix("64:ff9b::/96"); nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case !ip.IsValid():
		return "it is no address"
	case ip.IsUnspecified() || ip.IsLoopback():
		return "it is this machine"
	case ip.IsPrivate():
		return "it is a private address"
	case ip.IsLinkLocalUnicast():
		return "it is a link-local address, where clouds keep their metadata"
	case ip.IsMulticast():
		return "it is a multicast address"
	case ip.Is6() && !netip.MustParsePrefix("2000::/3").Contains(ip):
		return "it is no public address"
	case slices.ContainsFunc(specialNets(), func(p netip.Prefix) bool { return p.Contains(ip) }):
		return "it is an address reserved for special use"
	}
	return ""
}

// privateName says why a host name means something on this machine or network;
// "" if it may be public. Names are resolved by the proxy when there is one,
// so this is all that can be known of them then.
func privateName(host string) string {
	if !strings.Contains(host, ".") {
		return "it is a name of this machine or network"
	}
	for _, suffix := range [...]string{".localhost", ".localdomain", ".local", ".internal", ".intranet", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, suffix) {
			return "it is a name of this machine or network"
		}
	}
	return ""
}

// checkHost refuses a normalized host that is known to be private without
// asking DNS.
func checkHost(host string) error {
	why := ""
	if ip, err := netip.ParseAddr(host); err == nil {
		why = privateReason(ip)
	} else {
		why = privateName(host)
	}
	if why != "" {
		return &refusedError{host, why}
	}
	return nil
}

// checkDial refuses an IP:port about to be connected to.
func checkDial(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusedError{address, "it is no address"}
	}
	if why := privateReason(ap.Addr()); why != "" {
		return &refusedError{ap.Addr().String(), why}
	}
	return nil
}

// hostList is a list of hosts, each as host or host:port.
type hostList []string

// contains reports whether u's host is in the list. Hosts are compared whole.
func (l hostList) contains(u *url.URL) bool {
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return slices.ContainsFunc(l, func(entry string) bool {
		ehost, eport, err := net.SplitHostPort(entry)
		if err != nil {
			ehost, eport = strings.Trim(entry, "[]"), port
		}
		normal, err := normalHost(ehost)
		return err == nil && normal == host && eport == port
	})
}

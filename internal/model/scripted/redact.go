package scripted

import (
	"math"
	"regexp"
	"strings"
	"sync"
)

// redacted stands in place of a secret.
const redacted = "[REDACTED]"

// secretForms are credentials that show by their form.
var secretForms = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`,
		`\bsk-[A-Za-z0-9_-]{16,}`,                // OpenAI, Anthropic, OpenRouter, DashScope
		`\b[rs]k_(?:live|test)_[A-Za-z0-9]{10,}`, // Stripe
		`\bAIza[A-Za-z0-9_-]{30,}`,               // Google API key
		`\bya29\.[A-Za-z0-9_.-]{16,}`,            // Google OAuth
		`\bGOCSPX-[A-Za-z0-9_-]{16,}`,
		`\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`,
		`\bgh[pousr]_[A-Za-z0-9]{20,}`,
		`\bgithub_pat_[A-Za-z0-9_]{20,}`,
		`\bglpat-[A-Za-z0-9_-]{16,}`,
		`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`,
		`\bxapp-[A-Za-z0-9-]{10,}`,
		`\b(?:hf|npm|gsk|pypi|dop_v1|shpat|sq0atp|lin_api)[_-][A-Za-z0-9_-]{16,}`,
		`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, // JWT
	}, "|"))
})

// Places whose value is a credential; the last group is it.
var (
	authScheme = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(\bbearer\s+|\bauthorization["']?\s*[:=]\s*["']?(?:basic|token)\s+)([A-Za-z0-9_.~+/=-]{6,})`)
	})
	urlPassword = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://[^\s/:@"']*:)([^\s/@"']+)@`)
	})
	namedSecret = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)((?:api[_-]?key|secret|token|passw(?:or)?d|credential|private[_-]?key|access[_-]?key|_auth)[a-z0-9_.-]*["']?\s*(?::=|=>|[:=])\s*["']?)([A-Za-z0-9_./+=~!$%^&*@-]{12,})`)
	})
)

// Redact replaces what looks like a credential by "[REDACTED]": keys and tokens
// of known forms, JSON web tokens, PEM private keys, bearer and basic
// credentials, passwords in URLs, and values of a name such as api_key or
// password that look random. It is what [Record] uses by itself.
func Redact(s string) string {
	if len(s) < 8 {
		return s
	}
	s = secretForms().ReplaceAllString(s, redacted)
	s = urlPassword().ReplaceAllString(s, "${1}"+redacted+"@")
	s = redactGroup(authScheme(), s, func(v string) bool {
		return len(v) >= 20 || strings.ContainsAny(v, "0123456789") // not a word after "bearer"
	})
	return redactGroup(namedSecret(), s, looksRandom)
}

// redactGroup replaces the second group of each match that is secret.
func redactGroup(re *regexp.Regexp, s string, secret func(string) bool) string {
	return re.ReplaceAllStringFunc(s, func(m string) string {
		g := re.FindStringSubmatch(m)
		if !secret(g[2]) {
			return m
		}
		return g[1] + redacted
	})
}

// looksRandom tells a credential from an identifier or an expression: mixed
// characters without structure, at least 3 bits each.
func looksRandom(v string) bool {
	v = strings.TrimRight(v, ".,;")
	if len(v) < 12 {
		return false
	}
	var digits, letters int
	counts := map[rune]int{}
	for _, r := range v {
		counts[r]++
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			letters++
		}
	}
	if digits == 0 || letters == 0 {
		return false
	}
	bits := 0.0
	for _, n := range counts {
		p := float64(n) / float64(len(v))
		bits -= p * math.Log2(p)
	}
	return bits >= 3
}

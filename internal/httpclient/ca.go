package httpclient

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"sync"
)

type certificate = *x509.Certificate

// readCAFile returns the certificates in a PEM file; none for no file. Blocks
// of other types (a private key beside its certificate) are passed over.
func readCAFile(path string) ([]certificate, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading CA file: %w", err)
	}
	var certs []certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("CA file %s: certificate %d: %w", path, len(certs)+1, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, fmt.Errorf("CA file %s: %w", path, errNoCertificate)
	}
	return certs, nil
}

var errNoCertificate = errors.New(`no certificate in it; a PEM file with "-----BEGIN CERTIFICATE-----" is needed (convert DER with: openssl x509 -inform der -in FILE)`)

// lazyPool is a certificate pool that gets its content when first needed:
// reading the system's takes milliseconds that a plain http:// run need not
// pay.
type lazyPool struct {
	roots *x509.CertPool // empty until fill
	extra []certificate
	once  sync.Once
}

func newLazyPool(extra []certificate) *lazyPool {
	return &lazyPool{roots: x509.NewCertPool(), extra: extra}
}

// fill puts the system's and the extra certificates into roots. A machine
// without system certificates trusts the extra ones alone.
func (p *lazyPool) fill() {
	p.once.Do(func() {
		if system, err := x509.SystemCertPool(); err == nil {
			*p.roots = *system
		}
		for _, cert := range p.extra {
			p.roots.AddCert(cert)
		}
	})
}

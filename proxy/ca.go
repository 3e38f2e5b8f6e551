//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"
)

// authority signs for the hosts of one session, and is known inside that session alone. Its key is nowhere but in this
// process's memory.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// lifetime of the authority and of what it signs: longer than a session.
const lifetime = 90 * 24 * time.Hour

func newAuthority(hosts []string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	a := &authority{key: key, leaves: map[string]*tls.Certificate{}}
	// A client takes from it what it says about these hosts, and nothing else.
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: serial(),
		Subject: pkix.Name{CommonName: "sbx, this session only"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: hosts}, &x509.Certificate{
		Subject: pkix.Name{CommonName: "sbx, this session only"}}, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("making the session's certificate authority: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a, nil
}

// leaf is the certificate of one host.
func (a *authority) leaf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[host]; c != nil {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: serial(),
		Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: a.cert.NotBefore,
		NotAfter: a.cert.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	a.leaves[host] = c
	return c, nil
}

func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[0] = b[0]&0x7f | 1
	return new(big.Int).SetBytes(b[:])
}

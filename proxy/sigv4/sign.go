package sigv4

import (
	"net/http"
	"slices"
	"strings"
)

// Unsigned stands for a body that is not signed.
const Unsigned = "UNSIGNED-PAYLOAD"

// What stands for a body whose chunks are signed, or that has unsigned ones and a trailer.
const (
	streamed        = "STREAMING-" + algorithm + "-PAYLOAD"
	streamedTrailer = streamed + "-TRAILER"
	unsignedTrailer = "STREAMING-" + Unsigned + "-TRAILER"
)

// Payload is what a request says that stands for its body: a hash, or a word. "" is nothing: its body has to be hashed.
func (c *Claim) Payload(r *http.Request) string {
	if v := r.Header[payloadHeader]; len(v) > 0 {
		return strings.Join(v, ",")
	}
	if v := values(pairs(r.URL.RawQuery), payloadHeader); c.presigned && len(v) > 0 {
		return strings.Join(v, ",")
	}
	return ""
}

// Presigned says whether the signature stands in the address. Such a request may leave its body out of what is signed
// without a word.
func (c *Claim) Presigned() bool { return c.presigned }

// Known says whether a word for a body is one that can be signed anew.
func Known(payload string) bool {
	switch payload {
	case Unsigned, streamed, streamedTrailer, unsignedTrailer:
		return true
	}
	return isHash(payload)
}

// Verified is a claim whose signature is right, with what it was made from.
type Verified struct {
	Claim
	form    form
	payload string
	signer
}

// Verify says whether a secret key has made the signature of a request whose body is as payload says.
func (c *Claim) Verify(r *http.Request, secret, payload string) (*Verified, bool) {
	s := c.signer(secret)
	for _, f := range forms {
		if same(s.request(canonical(r, f, c.Signed, payload)), c.Signature) {
			return &Verified{*c, f, payload, s}, true
		}
	}
	return nil, false
}

// Sign signs a request anew, for the same scope and time and in the same form. What was signed stays signed, but for
// headers that do not go on. It returns the signature.
func (v *Verified) Sign(r *http.Request, key Key) string {
	signed := slices.DeleteFunc(slices.Clone(v.Signed), func(name string) bool {
		_, ok := said(r, name)
		return !ok || name == strings.ToLower(tokenHeader)
	})
	r.Header.Del(tokenHeader)
	now, id := v.Claim.signer(key.Secret), key.ID+"/"+v.Claim.scope()
	if !v.presigned && key.Token != "" {
		r.Header.Set(tokenHeader, key.Token)
		signed = append(signed, strings.ToLower(tokenHeader))
	}
	slices.Sort(signed)
	if v.presigned {
		r.URL.RawQuery = v.address(r.URL.RawQuery, id, strings.Join(signed, ";"), key.Token)
	}
	signature := now.request(canonical(r, v.form, signed, v.payload))
	if v.presigned {
		r.URL.RawQuery += "&" + querySignature + "=" + signature
	} else {
		r.Header.Set(authorization, algorithm+" Credential="+id+", SignedHeaders="+strings.Join(signed, ";")+
			", Signature="+signature)
	}
	if v.payload == streamed || v.payload == streamedTrailer {
		r.Body = newChunks(r.Body, chain{v.signer, v.Signature}, chain{now, signature}, v.payload == streamedTrailer)
	}
	return signature
}

// address is the parameters of an address that is signed anew, still without the signature.
func (v *Verified) address(raw, id, signed, token string) string {
	var out []string
	for _, p := range pairs(raw) {
		switch p.name {
		case querySignature, tokenHeader:
			continue
		case queryID:
			p.raw = queryID + "=" + encode(id)
		case querySigned:
			p.raw = querySigned + "=" + encode(signed)
		}
		out = append(out, p.raw)
	}
	if token != "" {
		out = append(out, tokenHeader+"="+encode(token))
	}
	return strings.Join(out, "&")
}

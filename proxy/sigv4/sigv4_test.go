package sigv4

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// The keys of what AWS has published: its test suite (aws-sig-v4-test-suite), and the examples of the S3 reference.
const (
	suiteSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	s3Secret    = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	suiteScope  = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request"
	s3Scope     = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
	formHash    = "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e" // of "Param1=value1"
)

// request reads one as it is sent.
func request(t testing.TB, lines ...string) *http.Request {
	t.Helper()
	text := strings.Join(lines, "\r\n") + "\r\n\r\n"
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return r
}

// signedWith adds a header with a claim.
func signedWith(scope, signed, signature string) string {
	return "Authorization: AWS4-HMAC-SHA256 Credential=" + scope + ", SignedHeaders=" + signed + ", Signature=" + signature
}

// vector is a request with its published signature.
type vector struct {
	name, secret, payload string
	lines                 []string
}

func vectors() (list []vector) {
	suite := func(name, line, signed, signature string, more ...string) {
		list = append(list, vector{name, suiteSecret, emptyHash, append([]string{line, "Host: example.amazonaws.com",
			"X-Amz-Date: 20150830T123600Z", signedWith(suiteScope, signed, signature)}, more...)})
	}
	const plain = "host;x-amz-date"
	unreserved := "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	suite("get-vanilla", "GET / HTTP/1.1", plain, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")
	suite("get-vanilla-query-order-key-case", "GET /?Param2=value2&Param1=value1 HTTP/1.1", plain,
		"b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500")
	suite("get-vanilla-query-unreserved", "GET /?"+unreserved+"="+unreserved+" HTTP/1.1", plain,
		"9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197")
	suite("get-vanilla-utf8-query", "GET /?%E1%88%B4=bar HTTP/1.1", plain,
		"2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04")
	suite("get-header-key-duplicate", "GET / HTTP/1.1", "host;my-header1;x-amz-date",
		"c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
		"My-Header1: value2", "My-Header1: value2", "My-Header1: value1")
	suite("get-header-value-order", "GET / HTTP/1.1", "host;my-header1;x-amz-date",
		"08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
		"My-Header1: value4", "My-Header1: value1", "My-Header1: value3", "My-Header1: value2")
	suite("get-header-value-trim", "GET / HTTP/1.1", "host;my-header1;my-header2;x-amz-date",
		"acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736", "My-Header1:  value1", `My-Header2:  "a   b   c"`)
	suite("get-unreserved", "GET /"+unreserved+" HTTP/1.1", plain,
		"07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f")
	suite("get-utf8", "GET /%E1%88%B4 HTTP/1.1", plain, "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85")
	suite("get-space-unnormalized", "GET /example%20space/ HTTP/1.1", plain,
		"652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741")
	suite("get-slashes-unnormalized", "GET //example// HTTP/1.1", plain,
		"87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5")
	suite("get-slashes-normalized", "GET //example// HTTP/1.1", plain,
		"9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84")
	suite("get-relative-relative-normalized", "GET /example1/example2/../.. HTTP/1.1", plain,
		"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")
	suite("post-vanilla", "POST / HTTP/1.1", plain, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b")
	suite("post-vanilla-query", "POST /?Param1=value1 HTTP/1.1", plain,
		"28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11")
	suite("post-header-key-sort", "POST / HTTP/1.1", "host;my-header1;x-amz-date",
		"c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c", "My-Header1: value1")
	suite("post-x-www-form-urlencoded", "POST / HTTP/1.1",
		"content-length;content-type;host;x-amz-content-sha256;x-amz-date",
		"d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
		"Content-Type: application/x-www-form-urlencoded", "Content-Length: 13", "X-Amz-Content-Sha256: "+formHash)
	list[len(list)-1].payload = formHash
	presigned := "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + strings.ReplaceAll(suiteScope, "/", "%2F") +
		"&X-Amz-Date=20150830T123600Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature="
	for name, x := range map[string][2]string{
		"presigned get-vanilla": {"", "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d"},
		"presigned get-vanilla-query-order-key-case": {"Param2=value2&Param1=value1&",
			"86012e2c9ad4d77369f5d81c11f75158aae4f895a085212cc6d3f923d300bed5"},
	} {
		list = append(list, vector{name, suiteSecret, emptyHash, []string{"GET /?" + x[0] + presigned + x[1] + " HTTP/1.1",
			"Host: example.amazonaws.com"}})
	}
	return append(list, s3Vectors()...)
}

// s3Vectors are the examples of the S3 reference.
func s3Vectors() []vector {
	return []vector{
		{"GET an object", s3Secret, emptyHash, []string{"GET /test.txt HTTP/1.1",
			"Host: examplebucket.s3.amazonaws.com", "Range: bytes=0-9", "x-amz-content-sha256: " + emptyHash,
			"x-amz-date: 20130524T000000Z", signedWith(s3Scope, "host;range;x-amz-content-sha256;x-amz-date",
				"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")}},
		{"PUT an object", s3Secret, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			[]string{"PUT /test%24file.text HTTP/1.1", "Host: examplebucket.s3.amazonaws.com",
				"Date: Fri, 24 May 2013 00:00:00 GMT", "x-amz-date: 20130524T000000Z",
				"x-amz-storage-class: REDUCED_REDUNDANCY",
				"x-amz-content-sha256: 44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
				signedWith(s3Scope, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
					"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")}},
		{"GET a setting", s3Secret, emptyHash, []string{"GET /?lifecycle HTTP/1.1",
			"Host: examplebucket.s3.amazonaws.com", "x-amz-content-sha256: " + emptyHash, "x-amz-date: 20130524T000000Z",
			signedWith(s3Scope, "host;x-amz-content-sha256;x-amz-date",
				"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")}},
		{"a presigned address", s3Secret, Unsigned, []string{"GET /test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256" +
			"&X-Amz-Credential=" + strings.ReplaceAll(s3Scope, "/", "%2F") + "&X-Amz-Date=20130524T000000Z" +
			"&X-Amz-Expires=86400&X-Amz-SignedHeaders=host" +
			"&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404 HTTP/1.1",
			"Host: examplebucket.s3.amazonaws.com"}},
		{"chunks", s3Secret, streamed, chunkedHead("AKIAIOSFODNN7EXAMPLE",
			"4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9")},
		{"chunks with a trailer", s3Secret, streamedTrailer, trailedHead("AKIAIOSFODNN7EXAMPLE",
			"106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e")},
	}
}

func chunkedHead(id, signature string) []string {
	return []string{"PUT /examplebucket/chunkObject.txt HTTP/1.1", "Host: s3.amazonaws.com",
		"x-amz-date: 20130524T000000Z", "x-amz-storage-class: REDUCED_REDUNDANCY",
		"x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "Content-Encoding: aws-chunked",
		"x-amz-decoded-content-length: 66560", "Content-Length: 66824",
		signedWith(strings.Replace(s3Scope, "AKIAIOSFODNN7EXAMPLE", id, 1),
			"content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;"+
				"x-amz-storage-class", signature)}
}

func trailedHead(id, signature string) []string {
	return []string{"PUT /examplebucket/chunkObject.txt HTTP/1.1", "Host: s3.amazonaws.com",
		"x-amz-date: 20130524T000000Z", "x-amz-storage-class: REDUCED_REDUNDANCY",
		"x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", "Content-Encoding: aws-chunked",
		"x-amz-decoded-content-length: 66560", "x-amz-trailer: x-amz-checksum-crc32c", "Content-Length: 66946",
		signedWith(strings.Replace(s3Scope, "AKIAIOSFODNN7EXAMPLE", id, 1),
			"content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;"+
				"x-amz-trailer", signature)}
}

// What AWS has published is verified; what is signed anew with the same key is the same, and with another key it is
// right for that one alone.
func TestPublishedSignatures(t *testing.T) {
	for _, v := range vectors() {
		r := request(t, v.lines...)
		c, ok := Read(r)
		if !ok {
			t.Errorf("%s: it has no claim", v.name)
			continue
		}
		if p := c.Payload(r); p != "" && p != v.payload {
			t.Errorf("%s: its body is %s", v.name, p)
		}
		good, ok := c.Verify(r, v.secret, v.payload)
		if !ok {
			t.Errorf("%s: its signature is not verified", v.name)
			continue
		}
		if _, ok := c.Verify(r, v.secret+"x", v.payload); ok {
			t.Errorf("%s: another key has made it", v.name)
		}
		if got := good.Sign(r, Key{ID: c.ID, Secret: v.secret}); got != c.Signature {
			t.Errorf("%s: signed anew it is %s", v.name, got)
		}
		good.Sign(r, Key{ID: "OTHER", Secret: "other", Token: "to/ken+="})
		again, ok := Read(r)
		if !ok || again.ID != "OTHER" || again.scope() != c.scope() || again.Time != c.Time {
			t.Errorf("%s: it was to be %+v, and is %+v", v.name, c, again)
			continue
		}
		if _, ok := again.Verify(r, "other", v.payload); !ok {
			t.Errorf("%s: what was signed anew is not verified", v.name)
		}
		if _, ok := again.Verify(r, v.secret, v.payload); ok {
			t.Errorf("%s: the first key has made it", v.name)
		}
		token := strings.Join(append(values(pairs(r.URL.RawQuery), tokenHeader), r.Header[tokenHeader]...), " ")
		if token != "to/ken+=" {
			t.Errorf("%s: its token is %q", v.name, token)
		}
	}
}

// A request that was changed after it was signed is not verified.
func TestChanged(t *testing.T) {
	head := s3Vectors()[0].lines
	for name, change := range map[string]func(r *http.Request){
		"the method":    func(r *http.Request) { r.Method = "PUT" },
		"the path":      func(r *http.Request) { r.URL.Path = "/other.txt" },
		"a parameter":   func(r *http.Request) { r.URL.RawQuery = "acl" },
		"the host":      func(r *http.Request) { r.Host = "other.s3.amazonaws.com" },
		"a header":      func(r *http.Request) { r.Header.Set("Range", "bytes=0-99") },
		"a second one":  func(r *http.Request) { r.Header.Add("Range", "bytes=0-99") },
		"one less":      func(r *http.Request) { r.Header.Del("Range") },
		"the time":      func(r *http.Request) { r.Header.Set("X-Amz-Date", "20130524T000001Z") },
		"nothing":       func(r *http.Request) {},
		"not signed":    func(r *http.Request) { r.Header.Set("User-Agent", "x") },
		"what is empty": func(r *http.Request) { r.Header.Set("X-Amz-Security-Token", "x") },
	} {
		r := request(t, head...)
		change(r)
		c, ok := Read(r)
		if ok {
			_, ok = c.Verify(r, s3Secret, emptyHash)
		}
		if want := name == "nothing" || name == "not signed" || name == "what is empty"; ok != want {
			t.Errorf("%s: verified %v", name, ok)
		}
	}
}

// Headers that do not go on are not signed, and the others stay so.
func TestHeadersThatDoNotGoOn(t *testing.T) {
	v := vectors()[4] // get-header-key-duplicate
	r := request(t, v.lines...)
	c, _ := Read(r)
	good, ok := c.Verify(r, v.secret, v.payload)
	if !ok {
		t.Fatal("not verified")
	}
	r.Header.Del("My-Header1")
	good.Sign(r, Key{ID: "A", Secret: "b"})
	if got := r.Header.Get("Authorization"); !strings.Contains(got, "SignedHeaders=host;x-amz-date,") {
		t.Error(got)
	}
}

// A token of the client's does not go on: there is the key's own, or none.
func TestTokensOfClients(t *testing.T) {
	for _, token := range []string{"", "own"} {
		head := s3Vectors()[0].lines
		r := request(t, append(head[:len(head):len(head)], "X-Amz-Security-Token: stale")...)
		c, _ := Read(r)
		good, ok := c.Verify(r, s3Secret, emptyHash)
		if !ok {
			t.Fatal("not verified")
		}
		good.Sign(r, Key{ID: "A", Secret: "b", Token: token})
		again, ok := Read(r)
		if ok {
			_, ok = again.Verify(r, "b", emptyHash)
		}
		if got := r.Header.Get("X-Amz-Security-Token"); !ok || got != token ||
			strings.Contains(r.Header.Get("Authorization"), "x-amz-security-token") != (token != "") {
			t.Errorf("its token is %q, and is to be %q: %s", got, token, r.Header)
		}
	}
}

// What is no whole claim is none.
func TestNoClaims(t *testing.T) {
	const hash = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
	good := signedWith(s3Scope, "host;x-amz-date", hash)
	for name, x := range map[string]struct {
		line string
		head []string
		ok   bool
	}{
		"control":         {"/", []string{good}, true},
		"without spaces":  {"/", []string{strings.ReplaceAll(good, ", ", ",")}, true},
		"twice":           {"/", []string{good, good}, false},
		"another method":  {"/", []string{strings.Replace(good, "AWS4-HMAC", "AWS4-ECDSA-P256", 1)}, false},
		"a short scope":   {"/", []string{strings.Replace(good, "/us-east-1", "", 1)}, false},
		"another ending":  {"/", []string{strings.Replace(good, "aws4_request", "aws4", 1)}, false},
		"another day":     {"/", []string{strings.Replace(good, "20130524", "20130525", 1)}, false},
		"no region":       {"/", []string{strings.Replace(good, "us-east-1", "", 1)}, false},
		"without host":    {"/", []string{signedWith(s3Scope, "x-amz-date", hash)}, false},
		"a name twice":    {"/", []string{signedWith(s3Scope, "host;host;x-amz-date", hash)}, false},
		"large letters":   {"/", []string{signedWith(s3Scope, "Host;host", hash)}, false},
		"a short one":     {"/", []string{signedWith(s3Scope, "host", hash[1:])}, false},
		"a part too much": {"/", []string{good + ", Signature=" + hash}, false},
		"a part less":     {"/", []string{strings.Split(good, ", Sig")[0]}, false},
		"both ways":       {"/?X-Amz-Signature=x", []string{good}, false},
		"none":            {"/", nil, false},
		"half an address": {"/?X-Amz-Algorithm=AWS4-HMAC-SHA256", nil, false},
		"a word":          {"/", []string{"Authorization: Bearer x"}, false},
	} {
		r := request(t, append([]string{"GET " + x.line + " HTTP/1.1", "Host: a.test", "X-Amz-Date: 20130524T000000Z"},
			x.head...)...)
		if _, ok := Read(r); ok != x.ok {
			t.Errorf("%s: %v", name, ok)
		}
	}
}

// chunkedBody is that of the S3 reference.
func chunkedBody(signatures ...string) string {
	body := "10000;chunk-signature=" + signatures[0] + "\r\n" + strings.Repeat("a", 65536) + "\r\n" +
		"400;chunk-signature=" + signatures[1] + "\r\n" + strings.Repeat("a", 1024) + "\r\n" +
		"0;chunk-signature=" + signatures[2] + "\r\n"
	if len(signatures) == 4 {
		body += "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:" + signatures[3] + "\r\n"
	}
	return body + "\r\n"
}

var (
	chunkSignatures = [...]string{"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
		"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
		"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"}
	trailerSignatures = [...]string{"b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
		"1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
		"2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
		"d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"}
)

// again signs a request with a body anew, and returns what goes on of that.
func again(t *testing.T, head []string, body io.Reader, secret string, with Key) (*http.Request, string, error) {
	t.Helper()
	r := request(t, head...)
	r.Body = io.NopCloser(body)
	c, ok := Read(r)
	if !ok {
		t.Fatal("no claim")
	}
	good, ok := c.Verify(r, secret, c.Payload(r))
	if !ok {
		t.Fatal("not verified")
	}
	good.Sign(r, with)
	out, err := io.ReadAll(r.Body)
	return r, string(out), err
}

// The chunks that AWS has published are verified and, with the same key, the same again; with another key they are
// right for that one. It does not matter in which pieces they come.
func TestChunks(t *testing.T) {
	for _, trailed := range []bool{false, true} {
		head, body := chunkedHead, chunkedBody(chunkSignatures[:]...)
		if trailed {
			head, body = trailedHead, chunkedBody(trailerSignatures[:]...)
		}
		claim := s3Vectors()[4].lines
		if trailed {
			claim = s3Vectors()[5].lines
		}
		key := Key{ID: "AKIAIOSFODNN7EXAMPLE", Secret: s3Secret}
		for name, from := range map[string]io.Reader{"at once": strings.NewReader(body),
			"byte by byte": iotest.OneByteReader(strings.NewReader(body)), "ends with data": iotest.DataErrReader(
				strings.NewReader(body))} {
			if _, got, err := again(t, claim, from, s3Secret, key); err != nil || got != body {
				t.Errorf("trailed %v, %s: %v, %d bytes of %d", trailed, name, err, len(got), len(body))
			}
		}
		r, got, err := again(t, claim, strings.NewReader(body), s3Secret, Key{ID: "OTHER", Secret: "other"})
		if err != nil || len(got) != len(body) || got == body {
			t.Errorf("trailed %v: %v, %d bytes of %d", trailed, err, len(got), len(body))
		}
		c, _ := Read(r)
		_, back, err := again(t, head("OTHER", c.Signature), strings.NewReader(got), "other", key)
		if err != nil || back != body {
			t.Errorf("trailed %v: signed back: %v", trailed, err)
		}
	}
}

// What is wrong with a chunk ends the body, and nothing of that chunk goes on.
func TestBadChunks(t *testing.T) {
	good, trailed := chunkedBody(chunkSignatures[:]...), chunkedBody(trailerSignatures[:]...)
	for name, x := range map[string]struct{ body, want string }{
		"another byte":     {strings.Replace(good, "\r\naaaa", "\r\naaab", 1), "is not its own"},
		"in other order":   {good[65626:66738] + good[:65626] + good[66738:], "is not its own"},
		"one less":         {good[:65626] + good[66738:], "is not its own"},
		"none":             {"10000\r\n" + good, "does not begin with"},
		"a short one":      {strings.Replace(good, "ad80", "ad8", 1), "is not its own"},
		"a wrong length":   {"ffff" + good[5:], "is longer than it says"},
		"a long line":      {strings.Repeat("0", 1<<20), "does not begin with"},
		"a large one":      {"100001;chunk-signature=" + chunkSignatures[0] + "\r\n", "more than 1048576"},
		"a huge one":       {"fffffffffffffffff;chunk-signature=" + chunkSignatures[0] + "\r\n", "does not begin with"},
		"something behind": {good + "x", "stands behind it"},
		"cut in a chunk":   {good[:1000], "unexpected EOF"},
		"cut between":      {good[:65626], "unexpected EOF"},
		"a trailer": {strings.Replace(trailed, "sOO8", "sOO9", 1),
			"the signature of the headers behind it is not theirs"},
		"a trailer more": {strings.Replace(trailed, "x-amz-trailer", "x-amz-other:1\r\nx-amz-trailer", 1), "is not theirs"},
		"no trailer":     {trailed[:strings.Index(trailed, "x-amz-ch")], "is not theirs"},
		"a long trailer": {trailed + strings.Repeat("x", maxTrailer), "too long"},
	} {
		head := s3Vectors()[4].lines
		if strings.Contains(name, "trailer") {
			head = s3Vectors()[5].lines
		}
		_, got, err := again(t, head, strings.NewReader(x.body), s3Secret, Key{ID: "OTHER", Secret: "other"})
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", name, err, x.want)
		}
		var chunk ChunkError
		if !errors.As(err, &chunk) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v is of another kind", name, err)
		}
		if strings.Contains(got, "aaab") || strings.Contains(got, "0;chunk-signature=") && !strings.Contains(got, "10000;") {
			t.Errorf("%s: it went on", name)
		}
	}
}

// FuzzRead reads hostile claims: what is one can be signed anew, and is the same one then.
func FuzzRead(f *testing.F) {
	for _, v := range vectors() {
		r := request(f, v.lines...)
		f.Add(r.Header.Get("Authorization"), r.Header.Get("X-Amz-Date"), r.URL.RawQuery)
	}
	f.Fuzz(func(t *testing.T, header, when, query string) {
		r := httptest.NewRequest("GET", "https://a.test/", nil)
		r.URL.RawQuery = query
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		r.Header.Set("X-Amz-Date", when)
		c, ok := Read(r)
		if !ok {
			return
		}
		if c.Signature = c.signer("secret").request(canonical(r, form{}, c.Signed, Unsigned)); c.presigned {
			return // its address holds another one
		}
		good, ok := c.Verify(r, "secret", Unsigned)
		if !ok {
			t.Fatalf("%+v is not verified", c)
		}
		good.Sign(r, Key{ID: c.ID, Secret: "secret", Token: "t"})
		again, ok := Read(r)
		if !ok || again.ID != c.ID || again.scope() != c.scope() || again.Time != c.Time {
			t.Fatalf("%+v became %+v: %s", c, again, r.Header)
		}
		if _, ok := again.Verify(r, "secret", Unsigned); !ok {
			t.Fatalf("signed anew, %+v is not verified", again)
		}
	})
}

// FuzzChunks reads hostile bodies: what goes on is as long as what came, or there is an error.
func FuzzChunks(f *testing.F) {
	sign := func() *chain {
		s := (&Claim{Date: "20130524", Region: "us-east-1", Service: "s3", Time: "20130524T000000Z"}).signer(s3Secret)
		return &chain{s, emptyHash}
	}
	c := sign() // short ones: the engine changes long inputs slowly
	data, last := c.chunk(Hash([]byte("abc"))), c.chunk(emptyHash)
	body := "3;chunk-signature=" + data + "\r\nabc\r\n0;chunk-signature=" + last + "\r\n"
	f.Add([]byte(body+"\r\n"), false)
	f.Add([]byte(body+"x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:"+
		c.trailer(Hash([]byte("x-amz-checksum-crc32c:sOO8/Q==\n")))+"\r\n\r\n"), true)
	f.Fuzz(func(t *testing.T, body []byte, trailed bool) {
		r := newChunks(io.NopCloser(bytes.NewReader(body)), *sign(), *sign(), trailed)
		got, err := io.ReadAll(r)
		if err == nil && !bytes.Equal(got, body) || len(got) > len(body) {
			t.Fatalf("%d bytes became %d: %v", len(body), len(got), err)
		}
	})
}

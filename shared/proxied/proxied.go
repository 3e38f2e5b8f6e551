// Package proxied is what sbx and sbx-proxy say to each other: one Config and then Orders, over a pipe that sbx-proxy
// inherits, and Reports back. It must never hold the value of a secret: values lie behind descriptors. broker's
// credential room and the program in folder proxy speak it.
package proxied

import "sbx.example/sbx/shared/mark"

// The descriptors that sbx-proxy inherits. Behind FdFirst come one for each secret, which has its value or is the turn
// of a login (package turn), then one for each listener, and then a pipe for the record, if there is one.
const (
	FdConfig = 3 // sbx-proxy ends when its other end is closed
	FdReport = 4
	FdFirst  = 5
)

// PublicKey is the file in a folder of sealed values to which they are sealed.
const PublicKey = "public"

// StatusNoKeyring is the exit status of sbx-proxy where the session bus has no keyring.
const StatusNoKeyring = 3

// Config is what one sbx-proxy serves.
type Config struct {
	Secrets   []Secret
	Sites     []Site
	Listeners []Listener
	Addresses
	Record bool        // what endpoints are asked and answer is written down
	Roots  string      // a file of certificates that are trusted instead of the host's; may be empty
	Marks  []mark.Mark // of decoys: a request that has one is refused
	Asks   bool        // each request waits until an Order says that it may be made
}

// Addresses say to which nothing is connected.
type Addresses struct {
	Closed  []string  // prefixes
	Decided []Decided // what ranges and rules say of addresses, before Closed: the first that is about one holds
}

// Decided is what ranges and rules say of a prefix's addresses at some ports.
type Decided struct {
	Prefix string
	Lo, Hi uint16
	Pass   bool // also where Closed has it
	Deny   bool
}

// Secret is one whose value can be read from its descriptor.
type Secret struct {
	Name        string
	Placeholder string // what stands for it inside
	// Key of an AWS access key is what stands for its secret, as Placeholder does for its id; "": it is none
	Key    string
	Scopes []string // what that may sign for: "SERVICE" or "SERVICE/REGION"
	Allow  []string // the requests that may carry it: "METHOD /path"; nil: all
	Sealed bool     // what can be read is encrypted
	Keys   string   // the folder whose key opens it
	// Fields of a login: those of the token endpoint's answers that are tokens, the one that requests carry first. Its
	// placeholders are made by sbx-proxy.
	Fields []string
	Login  string // the address of the token endpoint, which alone is asked with what it has issued
	Kept   []byte // of a login: what was issued before, sealed; empty: nothing
	Mark   string // of that (package turn)
}

// Site is one server outside, and what may be asked of it.
type Site struct {
	Host   string
	Port   uint16
	Plain  bool   // it speaks no TLS
	Prefix string // of its paths, as addresses have it, for a site with a listener of its own
	// Versioned paths: at such a listener a client may leave out the first segment
	Versioned []string
	Places    []Place
	Logins    []Login
	Inject    bool // the first place's value is put in whatever the client says
	// Budget of an endpoint; nil: there is none
	Budget *Budget
}

// Place is where in a request the value of a secret may stand.
type Place struct {
	Secret string
	Header string // its name
	Format string // of the header's value, where it is made here: "Bearer {}"
	Basic  bool   // a password of HTTP's own authentication
	User   string // that goes with it
	// AnyUser may go with it as well, and the secret may be the user
	AnyUser bool
	Query   string // a parameter of the address
	AWS     bool   // it signs the request (AWS4-HMAC-SHA256)
}

// Login is a token endpoint: what it issues is kept, and placeholders go inside.
type Login struct {
	Secret string
	Path   string
}

// Listener is one address inside.
type Listener struct {
	Port uint16
	Site int // whose requests come without TLS; AnySite: TLS, and the client names the site
}

// AnySite is no site of its own.
const AnySite = -1

// Budget bounds what is used of an endpoint; 0 is without a bound.
type Budget struct {
	Name     string
	API      string // whose words an answer is in: anthropic, openai, gemini
	Models   []string
	Requests int64
	Tokens   int64
	Cents    int64            // of the money that tokens cost
	Prices   map[string]Price // by model; a name may end in *
	Rate     int64            // requests a minute
}

// Price is what a million tokens cost, in cents.
type Price struct{ In, Out int64 }

// Report is one line of sbx-proxy's: exactly one of its members is set.
type Report struct {
	Ready  *Ready  `json:",omitempty"`
	Failed string  `json:",omitempty"` // why it ends
	Use    *Use    `json:",omitempty"`
	May    *May    `json:",omitempty"`
	Issued *Issued `json:",omitempty"`
	Newer  *Newer  `json:",omitempty"`
	Cut    bool    `json:",omitempty"` // what the last Order to cut was about has ended
}

// Issued is what of a login is to be kept from now on. Tokens answer it.
type Issued struct {
	Secret string
	Sealed []byte
}

// Newer asks for the tokens of a login that another session was issued. Tokens answer it.
type Newer struct {
	Secret string
	Have   string // the mark of those that are known
	Key    string // to which they are sealed
}

// Tokens say what is kept of a login.
type Tokens struct {
	Secret string
	Mark   string
	Sealed []byte `json:",omitempty"` // to the Key; empty: they are known
	Ended  bool   `json:",omitempty"` // it was removed
	Why    string `json:",omitempty"` // what did not work
}

// May asks whether a request may be made.
type May struct {
	ID   uint64
	Site int
}

// Order answers a May, ends the requests to sites that are under way, or says what is kept of a login, or to which
// addresses nothing is connected from now on.
type Order struct {
	ID     uint64  `json:",omitempty"` // of the May
	Why    string  `json:",omitempty"` // why it may not be made; "": it may
	Cut    []int   `json:",omitempty"` // the sites
	Tokens *Tokens `json:",omitempty"`
	// Addresses take the place of those that were said before.
	Addresses *Addresses `json:",omitempty"`
}

// Ready says that it listens.
type Ready struct {
	CA string // the session's certificate authority, as PEM
}

// Use is one request, or one that was not carried out. Of one with the value of Secret there are two: one with Sent
// before any of it leaves, and one with what came of it, unless the session ends first.
type Use struct {
	Secret   string `json:",omitempty"`
	Host     string
	Port     uint16
	Method   string `json:",omitempty"`
	Status   int    `json:",omitempty"`
	Refused  string `json:",omitempty"` // why it was refused
	Failed   string `json:",omitempty"` // what did not work
	Sent     bool   `json:",omitempty"` // Secret's value was put in; what comes of that is not known yet
	Left     string `json:",omitempty"` // why there is no answer, where nobody waits for one
	Decoy    string `json:",omitempty"` // whose mark was in it
	Strayed  bool   `json:",omitempty"` // Secret's placeholder stood where it does not belong, and stayed
	Unsigned string `json:",omitempty"` // why a request that the placeholder of an access key has signed stayed so
	Endpoint string `json:",omitempty"` // whose it was
	Issued   bool   `json:",omitempty"` // the answer had tokens of Secret, which is a login
	Shared   bool   `json:",omitempty"` // it was given to the same request of another program, and nobody was asked
	Spent    *Spent `json:",omitempty"` // of the endpoint, by the session until now
}

// Spent is what was used of an endpoint.
type Spent struct{ Requests, In, Out, Cents int64 }

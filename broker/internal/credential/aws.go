//go:build linux

package credential

import (
	"crypto/rand"
	"strings"

	"sbx.example/sbx/broker/internal/planner"
)

// accessKey is what stands for an access key of AWS: an id and a secret as long as tools expect them, other ones in
// each session.
func accessKey() (id, secret string) {
	const idLength, secretLength = 20, 40
	id = "AKIASBX" + rand.Text()
	secret = "sbx-placeholder-" + strings.ToLower(rand.Text())
	return id[:idLength], secret[:secretLength]
}

// showKey has tools find an access key: the variables have the last one, and a file has each under its own name. A
// token is not shown: sbx-proxy adds it to what it signs.
func (g *Grants) showKey(x granted, in *planner.Input) {
	g.show(awsCredentials(), entry{granted: x})
	for _, name := range []string{"AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_PROFILE"} { // of another key
		unsetEnv(in, name)
	}
	setEnv(in, "AWS_ACCESS_KEY_ID", x.placeholder)
	setEnv(in, "AWS_SECRET_ACCESS_KEY", x.key)
	if region := x.region(); region != "" {
		setEnv(in, "AWS_REGION", region)
		setEnv(in, "AWS_DEFAULT_REGION", region)
	}
}

// region is the first one that an access key may sign for.
func (x *granted) region() string {
	for _, s := range x.AWSSigV4 {
		if _, region, ok := strings.Cut(s, "/"); ok {
			return region
		}
	}
	return ""
}

// awsCredentials has every access key, as a profile of its name.
func awsCredentials() *file {
	return &file{"aws/credentials", [][2]string{{"AWS_SHARED_CREDENTIALS_FILE", "aws/credentials"}},
		func(list []entry) (text string) {
			for _, e := range list {
				text += "[" + e.Name + "]\naws_access_key_id = " + e.placeholder + "\naws_secret_access_key = " + e.key + "\n"
				if region := e.region(); region != "" {
					text += "region = " + region + "\n"
				}
			}
			return text
		}}
}

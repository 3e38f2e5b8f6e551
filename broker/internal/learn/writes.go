package learn

import "sbx.example/sbx/broker/internal/policy"

// NotWritten is the reason of what is refused while learning: what is read cannot hurt the host, what is written could.
const NotWritten = "learning writes nothing outside of the sandbox"

// WriteRule is how the rule that refuses writing while learning reads.
const WriteRule = "deny write /**"

// RefuseWrites puts the rule before the policy's own answer where that has none.
func RefuseWrites(match func(policy.Query) (policy.Rule, bool)) func(policy.Query) (policy.Rule, bool) {
	return func(q policy.Query) (policy.Rule, bool) {
		if r, ok := match(q); ok {
			return r, ok
		}
		if q.Kind == policy.KindPath && q.Access == policy.Write {
			r, err := policy.NewRule(policy.Rule{Kind: policy.KindPath, Pattern: "/**", Access: policy.Write,
				Decision: policy.Deny, Reason: NotWritten}, policy.Vars{})
			return r, err == nil
		}
		return policy.Rule{}, false
	}
}

package cli

import (
	"sbx/broker/internal/host"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/request"
)

// settings loads and merges the configuration for a project.
func (t *term) settings(r *request.Request, facts host.Facts, project string) (request.Settings, error) {
	return r.Settings(t.Env, facts, project)
}

// sources says where this user's files are.
func (t *term) sources(facts host.Facts, project string) policy.Sources {
	return request.Sources(t.Env, facts, project)
}

// projectRoot finds the project that a request is about; "" when there is none.
func (t *term) projectRoot(r *request.Request, facts host.Facts) string { return r.ProjectRoot(facts) }

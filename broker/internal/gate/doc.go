// Package gate says what of the host a sandbox may be asked for, and joins the engines that notice such an access with the one
// place that decides. It must never call a hidden thing askable, nor hand an engine more than the verdict says.
// cli makes a View of the plan, chooses an engine and gives it the arbiter's Ask; the engines know neither rules nor humans.
package gate

package changes

// Repository is the Why of a grant that shows the repository of a linked worktree.
const Repository = "the project's repository"

/** The tabs of a first visit; the first one is shown and can be run without changes. */
export const firstTabs = [
  {
    query: `# Ctrl+Enter runs the query,
# Ctrl+Space completes it.

query Users {
  hello
  users {
    id
    name
    email
  }
}
`,
  },
  {
    query: `query UserById($id: ID!) {
  user(id: $id) {
    id
    name
    email
  }
}
`,
    variables: `{
  "id": "1"
}`,
  },
  {
    query: `mutation CreateUser(
  $name: String!
  $email: String!
) {
  createUser(name: $name, email: $email) {
    id
    name
    email
  }
}
`,
    variables: `{
  "name": "Ada",
  "email": "ada@example.com"
}`,
  },
  {
    query: `# Shows each user that is created from now on,
# here or in another window.

subscription UserCreated {
  userCreated {
    id
    name
    email
  }
}
`,
  },
] as const;

/** The contents of a tab that the user opens. */
export const newTab = `query {
  users {
    id
    name
  }
}
`;

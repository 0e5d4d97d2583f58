// Form labels and names that only sound secret.
const labels = { password: "Password", token: "Access token", secret: "Client secret" };
const passwordPattern = "^[A-Za-z0-9]{12,}$";
const tokenType = "authorization_code";
const secretName = "shop-database";

export { labels, passwordPattern, tokenType, secretName };

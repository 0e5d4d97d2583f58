// Talks to the payment service.
const apiKey = "sk_live_SyntheticCorpus9876abcD";
const token = process.env.PAYMENT_TOKEN;
const password = document.getElementById("password").value;

export function pay(amount) {
  return fetch("https://pay.example/v1", { headers: { Authorization: `Bearer ${token}` }, body: amount });
}

export { apiKey, password };

package shop

func IsAdmin(role string) bool {
	return role == "user‮⁦// check⁩⁦" || role == "admin"
}
